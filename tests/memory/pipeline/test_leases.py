"""Leases: one worker at a time executes a run, and another takes over when the lease ends."""

import asyncio
import threading
from dataclasses import replace

import pytest

from recollect.memory.pipeline.stages import STAGES, Stage
from recollect.memory.run import Coverage
from recollect.memory.store import MemoryStore
from recollect.testing.contract import in_event_loop

from ..databases import Place
from ..threads import OwnThreads
from .extractors import CALM, hang
from .kit import LONGEST, QUICK, SHORT_LEASE, known_texts, record, run_of, when, working

WORKERS = "recollect-memory-workers"


class Freeze:
    """Lets the workers of a store stand still as a process does that is stopped: no heartbeat either.

    A transaction that had begun would hold its locks for as long, so they go on for a moment again and again.
    """

    def __init__(self) -> None:
        self._has_begun = threading.Event()
        self.is_over = threading.Event()

    async def __call__(self) -> None:
        self._has_begun.set()
        while not self.is_over.wait(4 * SHORT_LEASE.lease_seconds):  # noqa: ASYNC110 - it holds the thread
            await asyncio.sleep(0.05)

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self._has_begun.wait, LONGEST)


async def leased_until(store: MemoryStore) -> float:
    """When the lease of the only memory ends."""
    query = "SELECT available_at FROM memory_queue"
    return await store._database.fetch(query, (), lambda rows: float(rows[0][0]))


@in_event_loop
async def test_a_slow_call_holds_its_lease(shared_place: Place) -> None:
    options = replace(SHORT_LEASE, lease_seconds=6)
    async with working(shared_place, options=options) as (store, extractor):
        hold = extractor.hold("update")
        conversation = await record(store, "I went to the zoo")
        await hold.wait()
        async with working(shared_place, options=options) as (other, idle):
            other.start()
            latest = first = await leased_until(store)
            async with asyncio.timeout(LONGEST):
                while latest < first + options.lease_seconds / 2:
                    await asyncio.sleep(0.01)
                    latest = await leased_until(store)
            assert idle.calls == []
            hold.go.set()
            await when(store, conversation, status="done")
            assert idle.calls == []
        assert len(extractor.calls) == 3


@pytest.mark.parametrize("stage", STAGES)
@in_event_loop
async def test_a_worker_that_stood_still_writes_nothing_more(
    shared_place: Place, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    freeze = Freeze()
    async with working(shared_place, options=SHORT_LEASE) as (store, frozen):
        frozen.next(stage, freeze)
        conversation = await record(store, "I went to the zoo")
        await freeze.has_begun()
        async with working(shared_place, options=SHORT_LEASE) as (other, extractor):
            other.start()
            await when(store, conversation, status="done")
            taken_over = extractor.calls[0].stage
            assert taken_over == stage, "what was finished is not asked for again"
            freeze.is_over.set()
            while "lease lost" not in caplog.text:  # noqa: ASYNC110 - until the frozen one has tried
                await asyncio.sleep(0.01)
            (event, mind) = await other.list_entries("agent", "user")
            assert (event.text, mind.text) == ("I went to the zoo", CALM)
            assert {each.run_id for each in (*event.evidence, *mind.evidence)} == {
                (await run_of(other, conversation)).run_id
            }
            assert len(event.evidence) == len(mind.evidence) == 1
            run = await run_of(other, conversation)
            assert (run.status, len(run.stages), run.failures) == ("done", 3, ())


@in_event_loop
async def test_a_worker_whose_lease_was_lost_takes_other_work(file_place: Place) -> None:
    freeze = Freeze()
    async with working(file_place, options=SHORT_LEASE) as (store, frozen):
        frozen.next("modification", freeze)
        conversation = await record(store, "I went to the zoo")
        await freeze.has_begun()
        async with working(file_place, options=SHORT_LEASE) as (other, _):
            other.start()
            await when(store, conversation, status="done")
        freeze.is_over.set()
        await record(store, "I went home")
        assert await store.drain(LONGEST) == Coverage(remembered=2)
        assert frozen.calls[-1].said == "I went home"


@in_event_loop
async def test_closing_gives_a_run_back_at_once(lasting_place: Place) -> None:
    async with working(lasting_place, workers=0) as (watching, _):
        async with working(lasting_place, options=replace(QUICK, lease_seconds=600)) as (store, extractor):
            extractor.next("update", hang)
            conversation = await record(store, "I went to the zoo")
            async with asyncio.timeout(LONGEST):
                while len(extractor.calls) < 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
        run = await run_of(watching, conversation)
        assert (run.status, run.attempts, len(run.stages)) == ("pending", 0, 1)
        async with working(lasting_place) as (store, extractor):
            assert await store.drain(LONGEST) == Coverage(remembered=1)
            assert [call.stage for call in extractor.calls] == ["update", "mind"]


@in_event_loop
async def test_stores_that_close_at_any_time_leave_nothing_taken(shared_place: Place) -> None:
    long_lease = replace(QUICK, lease_seconds=600)
    async with working(shared_place, workers=0) as (watching, _):
        for number in range(6):
            await record(watching, f"I bought {number} apples", f"u{number % 2}")
        calls = 0
        for number in range(12):
            async with working(shared_place, workers=2, options=long_lease) as (store, extractor):
                store.start()
                await asyncio.sleep(0.003 * number)
            calls += len(extractor.calls)
        async with working(shared_place, options=long_lease) as (store, extractor):
            assert await store.drain(LONGEST) == Coverage(remembered=6)
        assert calls + len(extractor.calls) == 18, "no call was repeated: none was waiting when it was closed"


@in_event_loop
async def test_closing_ends_the_threads(place: Place) -> None:
    threads = OwnThreads()
    async with working(place, workers=3) as (store, extractor):
        await record(store, "I went to the zoo")
        await store.drain(LONGEST)
        assert threads.now() == [WORKERS]
    assert threads.now() == []
    assert not extractor.is_closed, "it is the caller's"
    await store.aclose()


@in_event_loop
async def test_a_store_that_does_nothing_has_no_thread(place: Place) -> None:
    threads = OwnThreads()
    async with working(place) as (store, _):
        assert await known_texts(store) == []
        assert threads.now() == []


@in_event_loop
async def test_closing_does_not_wait_for_a_call_that_hangs(place: Place) -> None:
    threads = OwnThreads()
    async with working(place) as (store, extractor):
        extractor.next("modification", hang)
        conversation = await record(store, "I went to the zoo")
        await when(store, conversation, status="running")
    assert threads.now() == []


@in_event_loop
async def test_several_threads_start_the_same_workers_once(file_place: Place) -> None:
    threads = OwnThreads()
    async with working(file_place, workers=2) as (store, extractor):
        hold = extractor.hold("modification")
        for number in range(8):
            await store.record_conversation(
                "agent", f"u{number}", [{"role": "user", "content": "I went home"}]
            )
        await asyncio.gather(*(asyncio.to_thread(store.start) for _ in range(20)))
        await hold.wait()
        assert threads.now() == [WORKERS]
        hold.go.set()
        await store.drain(LONGEST)
        assert extractor.most_at_once <= 2
