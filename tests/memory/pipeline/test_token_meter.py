"""The token meter is consulted before a run, and informed of the tokens spent."""

import asyncio
from collections import Counter
from functools import partial

import pytest

from recollect.errors import UnusableAnswerError
from recollect.memory.conversation import Conversation
from recollect.memory.run import Coverage
from recollect.memory.store import MemoryStore
from recollect.testing.contract import in_event_loop

from ..databases import Place
from .kit import failed_once, known_texts, record, run_of, working


class Purse:
    """Counts tokens, and lets tenants wait who have none left."""

    def __init__(self, **waits: float) -> None:
        self.waits = waits
        self.spent_by: Counter[str] = Counter()
        self.asked: list[str] = []

    async def wait(self, tenant: str) -> float:
        self.asked.append(tenant)
        return self.waits.get(tenant, 0.0)

    async def spent(self, tenant: str, tokens: int) -> None:
        self.spent_by[tenant] += tokens


class WatchfulPurse(Purse):
    """Notes the state of the run at each count."""

    def __init__(self, store: MemoryStore, conversation: Conversation) -> None:
        super().__init__()
        self.states: list[tuple[str, int]] = []
        self._run = partial(run_of, store, conversation)

    async def spent(self, tenant: str, tokens: int) -> None:
        run = await self._run()
        self.states.append((run.status, len(run.failures)))
        await super().spent(tenant, tokens)


class BrokenPurse:
    """A meter that cannot be reached."""

    def __init__(self, *, fails_to_answer: bool) -> None:
        self.fails_to_answer = fails_to_answer
        self.asked = 0

    async def wait(self, _: str) -> float:
        self.asked += 1
        if self.fails_to_answer:
            raise OSError("secret words")
        return 0.0

    async def spent(self, _: str, tokens: int) -> None:
        raise OSError(f"{tokens} secret words")


@in_event_loop
async def test_the_tokens_of_each_call_are_told(shared_place: Place) -> None:
    purse = Purse()
    async with working(shared_place, meter=purse) as (store, _):
        await record(store, "I sail")
        await store.drain(20)
        assert purse.spent_by == {"default": 3 + 4 + 5 + 6 + 7 + 8}
        assert purse.asked == ["default"]


@in_event_loop
async def test_the_tokens_of_a_call_that_failed_are_told_too(file_place: Place) -> None:
    purse = Purse()
    failure = UnusableAnswerError("no sense", "raw")
    failure.prompt_tokens, failure.completion_tokens = 100, 11
    async with working(file_place, meter=purse) as (store, extractor):
        extractor.next("update", failure)
        conversation = await record(store, "I sail")
        await failed_once(store, conversation)
        await store.drain(20)
        assert purse.spent_by == {"default": 33 + 111}


@in_event_loop
async def test_tokens_are_counted_before_the_run_is_seen_to_end_or_to_fail(file_place: Place) -> None:
    failure = UnusableAnswerError("no sense", "raw")
    failure.prompt_tokens, failure.completion_tokens = 100, 11
    async with file_place.open(workers=0) as store:
        conversation = await record(store, "I sail")
        purse = WatchfulPurse(store, conversation)
        async with working(file_place, meter=purse) as (learning, extractor):
            extractor.next("mind", failure)
            await learning.drain(20)
        assert purse.states == [("running", 0), ("running", 0), ("running", 0), ("running", 1)]
        assert purse.spent_by == {"default": 33 + 111}


@in_event_loop
async def test_a_tenant_that_must_wait_has_its_run_given_back_and_no_attempt_counted(
    shared_place: Place,
) -> None:
    purse = Purse(poor=0.3)
    async with working(shared_place, meter=purse, all_tenants=True) as (store, extractor):
        poor, rich = store.for_tenant("poor"), store.for_tenant("rich")
        waiting = await record(poor, "I am patient")
        await record(rich, "I sail")
        assert await rich.drain(20) == Coverage(remembered=1)
        while "poor" not in purse.asked:  # noqa: ASYNC110 - it is asked in another thread
            await asyncio.sleep(0.01)
        run = await run_of(poor, waiting)
        assert (run.attempts, run.failures) == (0, ())
        assert [call.said for call in extractor.calls if call.said == "I am patient"] == []
        purse.waits.clear()
        assert await poor.drain(20) == Coverage(remembered=1)
        run = await run_of(poor, waiting)
        assert (run.attempts, run.failures, await known_texts(poor)) == (0, (), ["I am patient"])


@in_event_loop
async def test_a_meter_that_cannot_count_loses_nothing_that_was_learned(
    file_place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    async with working(file_place, meter=BrokenPurse(fails_to_answer=False)) as (store, _):
        await record(store, "I sail")
        assert await store.drain(20) == Coverage(remembered=1)
    assert "tokens not counted (OSError)" in caplog.text
    assert "secret" not in caplog.text


@in_event_loop
async def test_a_meter_that_does_not_answer_lets_runs_wait(
    file_place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    purse = BrokenPurse(fails_to_answer=True)
    async with working(file_place, meter=purse) as (store, extractor):
        conversation = await record(store, "I sail")
        while not purse.asked:  # noqa: ASYNC110 - it is asked in another thread
            await asyncio.sleep(0.01)
        assert extractor.calls == []
        assert (await run_of(store, conversation)).failures == ()
    assert "token meter unavailable (OSError)" in caplog.text
    assert "secret" not in caplog.text
