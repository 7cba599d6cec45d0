"""Faults of a provider through the whole pipeline: retried and learned, or stored with their cause."""

import threading
from typing import Any

import pytest

from recollect.memory.pipeline.runner import RunOptions
from recollect.memory.run import Coverage
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import (
    CloseBefore,
    Garble,
    Hold,
    Overloaded,
    ProviderServer,
    Refuse,
    Reply,
    Truncate,
    WrongKey,
)

from ..databases import Place
from .kit import LONGEST, run_of
from .travellers import HOME, MOOD, PATH, extractor_of, home, saying

OPTIONS = RunOptions(lease_seconds=20, attempts=3, backoff_seconds=0.01)
NEVER = threading.Event()


FAULTS: dict[str, Any] = {
    "a rate limit": Refuse(429, retry_after=0.02),
    "a fault of the server": Refuse(500),
    "too many for now": Overloaded(),
    "no connection": CloseBefore(),
    "a connection that breaks": Truncate(30),
    "a page of HTML": Garble(),
    "an empty body": Garble(b""),
    "a body of the wrong shape": Garble(b'{"choices": 7}'),
    "ten megabytes": Garble(b'{"choices": "' + b"x" * 10_000_000 + b'"}'),
}


async def learn(place: Place, server: ProviderServer, **options: Any) -> tuple[Coverage, Any, list[str]]:
    """What comes of one conversation: the coverage, its run, and what is known then."""
    extractor = extractor_of(server, **options)
    async with extractor, place.open(workers=1, extractor=extractor, options=OPTIONS) as store:
        await store.add_entry("agent", "user", "profile", HOME)
        conversation = await store.record_conversation(
            "agent", "user", [{"role": "user", "content": saying(1)}]
        )
        coverage = await store.drain(LONGEST)
        memory = await store.get_memory("agent", "user")
        assert memory is not None
        return coverage, await run_of(store, conversation), memory.profile_content + memory.mind_content


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
@in_event_loop
async def test_a_provider_that_recovers(file_place: Place, server: ProviderServer, fault: Any) -> None:
    server.fail_next(PATH, fault, times=2)
    coverage, run, known = await learn(file_place, server)
    assert coverage == Coverage(remembered=1)
    assert [failure.stage for failure in run.failures] == ["modification", "modification"]
    assert known == [home(1), MOOD]
    assert len(server.requests(PATH)) == 3, "one call is enough for all stages"


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
@in_event_loop
async def test_a_provider_that_does_not_recover(
    file_place: Place, server: ProviderServer, fault: Any
) -> None:
    server.fail_next(PATH, fault, times=100)
    coverage, run, known = await learn(file_place, server)
    assert coverage == Coverage(failed=1)
    assert (run.status, run.attempts, len(run.failures)) == ("failed", 3, 3)
    assert run.error == run.failures[-1].error
    assert known == [HOME], "what was known stays"


@in_event_loop
async def test_a_provider_that_does_not_answer_in_time(file_place: Place, server: ProviderServer) -> None:
    server.fail_next(PATH, Hold(NEVER), times=100)
    coverage, run, known = await learn(file_place, server, timeout=0.1)
    assert (coverage, known) == (Coverage(failed=1), [HOME])
    assert {failure.error for failure in run.failures} == {
        "ModelUnavailableError: the model did not answer within 0.1 s"
    }


ANSWERS = {
    "prose": Reply("I am sorry, but I have nothing to say about that."),
    "half of JSON": Reply('{"summary": "a new home", "candidates": [{"type": "prof'),
    "wrong types": Reply('{"candidates": 7, "decisions": "all", "entries": {"text": 1}, "insights": []}'),
    "a list of numbers": Reply("[1, 2, 3]"),
    "an empty answer": Reply(""),
    "an answer that was cut off": Reply('{"candidates": [', stop="length"),
}


@pytest.mark.parametrize("said", ANSWERS.values(), ids=ANSWERS.keys())
@in_event_loop
async def test_an_answer_that_cannot_be_read_is_kept_and_asked_for_again(
    file_place: Place, server: ProviderServer, said: Reply
) -> None:
    server.chat.reply(said)
    coverage, run, known = await learn(file_place, server)
    assert coverage == Coverage(remembered=1)
    (failure,) = run.failures
    assert failure.stage == "modification"
    assert failure.error.startswith("UnusableAnswerError: ")
    assert failure.raw_response == said.text
    assert known == [home(1), MOOD]
    assert len(server.requests(PATH)) == 2


@in_event_loop
async def test_an_answer_that_is_never_readable_fails_with_all_that_was_said(
    place: Place, server: ProviderServer
) -> None:
    server.chat.reply(*(Reply(f"no \x00 {number}") for number in range(3)))
    coverage, run, known = await learn(place, server)
    assert coverage == Coverage(failed=1)
    assert [failure.raw_response for failure in run.failures] == ["no \x00 0", "no \x00 1", "no \x00 2"]
    assert known == [HOME]


@in_event_loop
async def test_a_wrong_key_is_not_tried_again(file_place: Place, server: ProviderServer) -> None:
    server.fail_next(PATH, WrongKey(), times=100)
    coverage, run, _ = await learn(file_place, server)
    assert (coverage, run.attempts) == (Coverage(failed=1), 1)
    assert run.error is not None
    assert run.error.startswith("ModelRefusedError: ")
