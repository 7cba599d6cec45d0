"""Runs that take no model are claimed and stored several at a time, and are as safe as one alone."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from recollect.errors import ExtractionError
from recollect.memory.conversation import Conversation
from recollect.memory.database.runs import Task
from recollect.memory.offline import OfflineExtractor
from recollect.memory.pipeline.runner import Runner
from recollect.memory.pipeline.store_barrier import StoreBarrier
from recollect.memory.pipeline.workers import Workers
from recollect.memory.run import Coverage
from recollect.memory.store import MemoryStore
from recollect.sql.scripts import Statement, combine, run_all
from recollect.sql.sqlalchemy.connections import Connections
from recollect.testing.contract import in_event_loop

from ..databases import Place
from .kit import LONGEST, QUICK, failed_once, known_texts, record, run_of, said, when, working
from .test_stored_together import FreeExtractor

TALK = said("I live in Berlin.", "I went to the zoo with my sister.", "I like tea.")


async def recorded(place: Place, users: int) -> list[Conversation]:
    """A conversation of each of some users, in a store that is closed again."""
    async with place.open() as store:
        return [await record(store, "I went to the zoo", f"user {number}") for number in range(users)]


def runner_of(store: MemoryStore) -> Runner:
    return Runner(store._database, FreeExtractor(), QUICK)


@in_event_loop
async def test_a_claim_takes_some_memories_and_leaves_the_rest_to_others(shared_place: Place) -> None:
    async with shared_place.open() as store:
        for number in range(5):
            await record(store, "I went to the zoo", f"user {number}")
            await record(store, "I went home", f"user {number}")
        first, other = runner_of(store), runner_of(store)
        mine = await first.claim_some("mine", 3)
        theirs = await other.claim_some("theirs", 8)
        assert (len(mine), len(theirs)) == (3, 2)
        taken = [task.run.memory_id for task in (*mine, *theirs)]
        assert len(set(taken)) == 5, "one run of a memory at a time"
        assert {task.messages[0].content for task in mine} == {"I went to the zoo"}, "the oldest of each"
        assert await first.claim_some("mine", 8) == []


@in_event_loop
async def test_runs_of_a_batch_are_all_learned_from(shared_place: Place) -> None:
    extractor = FreeExtractor()
    holds = [extractor.hold("modification") for _ in range(4)]
    async with shared_place.open() as store:
        for number in range(4):
            await record(store, f"I went to zoo {number}", f"user {number}")
    async with working(shared_place, extractor=extractor) as (store, _):
        store.start()
        for hold in holds:  # one worker executes all of them
            await hold.wait()
            hold.go.set()
        assert await store.drain(LONGEST) == Coverage(remembered=4)
        for number in range(4):
            assert await known_texts(store, f"user {number}") == [f"I went to zoo {number}"]
        assert extractor.most_at_once == 4


@in_event_loop
async def test_a_run_that_fails_keeps_no_other_of_its_batch(shared_place: Place) -> None:
    extractor = FreeExtractor()
    extractor.next("update", ExtractionError("not now"))
    stored = await recorded(shared_place, 3)
    async with working(shared_place, extractor=extractor) as (store, _):
        assert await store.drain(LONGEST) == Coverage(remembered=3)
        failures = [len((await run_of(store, each)).failures) for each in stored]
        assert sorted(failures) == [0, 0, 1]


@in_event_loop
async def test_a_run_that_has_lost_its_lease_writes_nothing_and_the_others_do(shared_place: Place) -> None:
    extractor = FreeExtractor()
    hold = extractor.hold("mind")
    stored = await recorded(shared_place, 3)
    async with working(shared_place, extractor=extractor) as (store, _):
        store.start()
        await hold.wait()
        lost = stored[0].memory_id
        sql = "UPDATE memory_queue SET lease = 'of another', available_at = available_at + 3000"
        await store._database.write(lambda: run_all([Statement(f"{sql} WHERE memory_id = ?1", (lost,))]))
        hold.go.set()
        for each in stored[1:]:
            await when(store, each, status="done")
        assert await known_texts(store, "user 0") == []
        assert (await run_of(store, stored[0])).stages == ()


@in_event_loop
async def test_closing_in_the_middle_gives_all_runs_of_a_batch_back(shared_place: Place) -> None:
    extractor = FreeExtractor()
    hold = extractor.hold("update")
    stored = await recorded(shared_place, 3)
    async with working(shared_place, extractor=extractor) as (store, _):
        store.start()
        await hold.wait()
    async with shared_place.open() as store:
        statuses = Counter([(await run_of(store, each)).status for each in stored])
        assert statuses.keys() <= {"pending", "done"}, "a result that is there already may be stored"
        assert statuses["pending"] >= 1
        assert len(await runner_of(store).claim_some("another", 8)) == statuses["pending"]


@in_event_loop
async def test_an_error_half_way_through_a_batch_is_recorded_with_its_run(shared_place: Place) -> None:
    extractor = FreeExtractor()
    extractor.next("modification", *[ExtractionError("never")] * 3)
    async with working(shared_place, extractor=extractor) as (store, _):
        conversation = await record(store, "I went to the zoo")
        assert len((await failed_once(store, conversation, 3)).failures) == 3
        assert await store.drain(LONGEST) == Coverage(failed=1)


# --- statements ---


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """The statements that are sent to a server meanwhile."""
    found: Counter[str] = Counter()
    original = Connections._run

    async def run(self: Connections, driver: Any, sql: str, parameters: Any = ()) -> Any:
        found[sql] += 1
        return await original(self, driver, sql, parameters)

    with monkeypatch.context() as patch:
        patch.setattr(Connections, "_run", run)
        yield found


@in_event_loop
async def test_a_run_by_rule_takes_few_statements(
    empty_postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three for each of its stages at most, also where much is known and some of it is said again."""
    async with Place(empty_postgres).open() as store:
        runner = Runner(store._database, OfflineExtractor(), QUICK)
        for _ in range(3):
            for number in range(8):
                await store.record_conversation("agent", f"user {number}", TALK)
            with counted(monkeypatch) as statements:
                assert await runner.execute_due("lease")
            assert statements.total() <= 9 * 8
        assert await store.coverage() == Coverage(remembered=24)


def test_changes_in_one_statement_have_parameters_of_their_own() -> None:
    both = combine(
        [Statement("UPDATE a SET b = ?2 WHERE c = ?1", (1, 2)), Statement("DELETE FROM d WHERE e = ?1", (3,))]
    )
    assert both.sql == (
        "WITH part0 AS (UPDATE a SET b = ?2 WHERE c = ?1), part2 AS (DELETE FROM d WHERE e = ?3) SELECT 1"
    )
    assert list(both.parameters) == [1, 2, 3]


# --- the queue ---


@in_event_loop
async def test_runs_that_are_cancelled_before_they_begin_are_released(shared_place: Place) -> None:
    async with shared_place.open() as store:
        for user in ("one", "other"):
            await record(store, "I went to the zoo", user)
        runner = runner_of(store)
        claim = runner.claim_some

        async def claim_and_cancel(lease: str, most: int) -> list[Task]:
            tasks = await claim(lease, most)
            asking = asyncio.current_task()
            assert asking is not None
            asking.cancel()
            return tasks

        runner.claim_some = claim_and_cancel  # type: ignore[method-assign]
        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(runner.execute_due("lease"))
        assert len(await claim("another", 8)) == 2


@in_event_loop
async def test_looking_for_work_writes_nothing(shared_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that are woken only read. Now and then they claim without that, so one quiet time is enough."""
    async with working(shared_place, extractor=FreeExtractor()) as (store, _):
        await record(store, "I went to the zoo")
        await store.drain(LONGEST)
        calls = Counter[str]()
        count_calls(monkeypatch, type(store._database), "write", calls)
        count_calls(monkeypatch, Workers, "_seconds_to_next", calls)
        async with asyncio.timeout(LONGEST):
            while calls["write"] or not calls["_seconds_to_next"]:
                calls.clear()
                for _ in range(5):
                    store.start()
                    await asyncio.sleep(0.05)


def count_calls(monkeypatch: pytest.MonkeyPatch, of: type, name: str, calls: Counter[str]) -> None:
    original = getattr(of, name)

    async def counting(*arguments: Any) -> Any:
        calls[name] += 1
        return await original(*arguments)

    monkeypatch.setattr(of, name, counting)


@in_event_loop
async def test_the_delay_is_that_of_the_oldest_conversation(shared_place: Place) -> None:
    """Also where another run of the same memory has ended just now."""
    async with shared_place.open() as store:
        for text in ("I went to the zoo", "I went home"):
            await record(store, text)
        past = "'2020-01-01T00:00:00.000000Z'"
        await store._database.write(
            lambda: run_all([Statement(f"UPDATE memory_runs SET created_at = {past}")])
        )
        runner = runner_of(store)
        task = await runner.claim("lease")
        assert task is not None
        assert await store.monitor.seconds_behind() == 0, "all work is in progress"
        await runner.execute(task)
        assert await store.monitor.seconds_behind() > 86_400


# --- the barrier ---


@in_event_loop
async def test_runs_store_when_all_are_ready_or_have_ended() -> None:
    barrier, stored = StoreBarrier(3), list[str]()

    async def run(name: str, computes: asyncio.Event, stores: bool = True) -> None:
        with barrier.entered() as may_store:
            await computes.wait()
            if stores:
                await may_store()
                stored.append(name)
                await may_store()  # a second time it does not wait

    computed = [asyncio.Event() for _ in range(3)]
    runs = [
        asyncio.create_task(run("a", computed[0])),
        asyncio.create_task(run("b", computed[1])),
        asyncio.create_task(run("fails", computed[2], stores=False)),
    ]
    for event in computed[:2]:
        event.set()
        await asyncio.sleep(0.01)
        assert stored == []
    computed[2].set()
    await asyncio.gather(*runs)
    assert stored == ["a", "b"]
