"""Failing runs: they are retried, and stored with their cause if that does not help."""

import asyncio
import logging

import pytest

from recollect.errors import (
    ConflictError,
    ExtractionError,
    ModelRefusedError,
    ModelUnavailableError,
    UnusableAnswerError,
)
from recollect.memory.pipeline.runner import RunOptions
from recollect.memory.pipeline.stages import STAGES, Stage
from recollect.memory.run import Coverage
from recollect.testing.contract import in_event_loop

from ..databases import Place
from .extractors import Call
from .kit import LONGEST, failed_once, known_texts, record, run_of, when, working

SECRET = "my password is tulip"


def unavailable(retry_after: float | None = None) -> ModelUnavailableError:
    error = ModelUnavailableError("the model is not there")
    error.retry_after = retry_after
    return error


ONCE = [
    unavailable(),
    unavailable(retry_after=0.02),
    UnusableAnswerError("not JSON", "half an ans"),
    ExtractionError("no answer", "raw \x00 \ud800"),
    RuntimeError(SECRET),
    AttributeError(SECRET),
    asyncio.CancelledError(),
    SystemExit(SECRET),
]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("error", ONCE, ids=lambda error: type(error).__name__)
@in_event_loop
async def test_what_goes_wrong_once_is_tried_again(
    file_place: Place, stage: Stage, error: BaseException
) -> None:
    async with working(file_place) as (store, extractor):
        extractor.next(stage, error)
        conversation = await record(store, "I went to the zoo")
        assert await store.drain(LONGEST) == Coverage(remembered=1)
        run = await run_of(store, conversation)
        (failure,) = run.failures
        assert (run.status, run.attempts, failure.stage) == ("done", 1, stage)
        assert failure.raw_response == getattr(error, "raw_response", "")
        assert SECRET not in failure.error
        assert [call.stage for call in extractor.calls].count(stage) == 2
        assert len(extractor.calls) == 4, "no finished stage is asked for again"
        assert await known_texts(store) == ["I went to the zoo"]


@in_event_loop
async def test_a_run_that_fails_too_often_is_kept_with_its_causes_and_raw_answers(place: Place) -> None:
    async with working(place) as (store, extractor):
        extractor.next("update", *(UnusableAnswerError(f"not JSON {n}", f"answer {n}") for n in range(3)))
        conversation = await record(store, "I went to the zoo")
        assert await store.drain(LONGEST) == Coverage(failed=1)
        run = await run_of(store, conversation)
        assert (run.status, run.attempts, run.error) == ("failed", 3, "UnusableAnswerError: not JSON 2")
        assert run.finished_at is not None
        assert [(failure.attempt, failure.raw_response) for failure in run.failures] == [
            (1, "answer 0"),
            (2, "answer 1"),
            (3, "answer 2"),
        ]
        assert await known_texts(store) == []
        assert (await store.list_runs(status="failed"))[0] == run


@in_event_loop
async def test_a_failed_run_is_retried_from_the_stage_at_which_it_failed(place: Place) -> None:
    async with working(place) as (store, extractor):
        extractor.next("mind", ModelRefusedError("wrong key"))
        conversation = await record(store, "I went to the zoo")
        assert await store.drain(LONGEST) == Coverage(failed=1)
        extractor.calls.clear()
        await store.retry_run((await run_of(store, conversation)).run_id)
        assert await store.drain(LONGEST) == Coverage(remembered=1)
        assert extractor.calls == [Call("mind", "I went to the zoo")]
        run = await run_of(store, conversation)
        assert (run.status, run.error, len(run.failures), len(run.stages)) == ("done", None, 1, 3)


@in_event_loop
async def test_a_run_that_is_retried_may_fail_again_and_counts_on(file_place: Place) -> None:
    async with working(file_place) as (store, extractor):
        extractor.next("modification", ModelRefusedError("wrong key"), ModelRefusedError("still wrong"))
        conversation = await record(store, "I went to the zoo")
        await store.drain(LONGEST)
        run = await run_of(store, conversation)
        await store.retry_run(run.run_id)
        await store.drain(LONGEST)
        run = await run_of(store, conversation)
        assert [(failure.attempt, failure.error) for failure in run.failures] == [
            (1, "ModelRefusedError: wrong key"),
            (2, "ModelRefusedError: still wrong"),
        ]


@in_event_loop
async def test_only_a_failed_run_can_be_retried(place: Place) -> None:
    async with working(place, workers=0) as (store, _):
        conversation = await record(store, "I went to the zoo")
        with pytest.raises(ConflictError, match="no failed run"):
            await store.retry_run((await run_of(store, conversation)).run_id)
        with pytest.raises(ConflictError, match="no failed run"):
            await store.retry_run("unknown")


@in_event_loop
async def test_what_the_model_refuses_is_not_asked_again(file_place: Place) -> None:
    async with working(file_place) as (store, extractor):
        extractor.next("modification", ModelRefusedError("unknown model", "no"))
        await record(store, "I went to the zoo")
        assert await store.drain(LONGEST) == Coverage(failed=1)
        assert len(extractor.calls) == 1


@in_event_loop
async def test_a_failed_run_does_not_keep_the_next_from_its_memory(place: Place) -> None:
    async with working(place) as (store, extractor):
        extractor.next("modification", ModelRefusedError("no"))
        await record(store, "I went to the zoo")
        await record(store, "I went home")
        assert await store.drain(LONGEST) == Coverage(remembered=1, failed=1)
        assert await known_texts(store) == ["I went home"]


@in_event_loop
async def test_a_conversation_of_which_a_part_failed_is_not_remembered(file_place: Place) -> None:
    async with working(file_place) as (store, extractor):
        conversation = await record(store, "I went to the zoo")
        await store.drain(LONGEST)
        extractor.next("modification", ModelRefusedError("no"))
        await store.append_messages(
            conversation.conversation_id, [{"role": "user", "content": "I went home"}]
        )
        coverage = await store.drain(LONGEST)
        assert (coverage, coverage.share) == (Coverage(failed=1), 0.0)


@in_event_loop
async def test_while_a_run_waits_to_be_tried_again_its_memory_waits_and_others_do_not(place: Place) -> None:
    options = RunOptions(lease_seconds=20, attempts=3, backoff_seconds=200)
    async with working(place, options=options) as (store, extractor):
        extractor.next("modification", unavailable())
        first = await record(store, "I went to the zoo")
        await failed_once(store, first)
        second = await record(store, "I went home")
        other = await record(store, "I went to sea", "another")
        await when(store, other, status="done")
        assert (await run_of(store, first)).status == "pending"
        assert (await run_of(store, second)).started_at is None
        assert [call.said for call in extractor.calls] == ["I went to the zoo"] + ["I went to sea"] * 3
        assert await store.coverage() == Coverage(remembered=1, pending=2)


BACKOFF = RunOptions(attempts=9, backoff_seconds=2, longest_backoff_seconds=30)


@pytest.mark.parametrize(
    ("attempt", "error", "seconds"),
    [
        (1, unavailable(), 2),
        (2, unavailable(), 4),
        (3, UnusableAnswerError("no"), 8),
        (5, RuntimeError("no"), 30),
        (8, unavailable(), 30),
        (9, unavailable(), None),
        (1, ModelRefusedError("no"), None),
        (1, unavailable(retry_after=17), 17),
        (1, unavailable(retry_after=0.5), 2),
        (1, unavailable(retry_after=-5), 2),
        (1, unavailable(retry_after=float("nan")), 2),
        (1, unavailable(retry_after=9999), 30),
    ],
)
def test_the_wait_doubles_and_heeds_what_the_provider_asks_for(
    attempt: int, error: Exception, seconds: float | None
) -> None:
    assert BACKOFF.again_in(attempt, error) == seconds


@pytest.mark.parametrize("name", ["lease_seconds", "attempts", "backoff_seconds", "longest_backoff_seconds"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_options_without_sense_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be more than 0"):
        RunOptions(**{name: value})


@pytest.mark.parametrize("name", ["lease_seconds", "longest_backoff_seconds"])
def test_nobody_waits_for_more_than_an_hour(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at most an hour"):
        RunOptions(**{name: 3601})


@in_event_loop
async def test_contents_are_not_logged(file_place: Place, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="recollect")
    async with working(file_place) as (store, extractor):
        extractor.next("modification", RuntimeError(SECRET), UnusableAnswerError("not JSON", SECRET))
        await record(store, SECRET)
        await store.drain(LONGEST)
    assert "stage modification (RuntimeError)" in caplog.text
    assert "tulip" not in caplog.text
