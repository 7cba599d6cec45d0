"""A fast clock that was set right: work that it scheduled does not wait until that time."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial

from recollect.memory.database import runs
from recollect.memory.database.access import column_now
from recollect.memory.entry import Entry, by_succession
from recollect.memory.run import Coverage
from recollect.sql.scripts import Script, Statement
from recollect.testing.contract import in_event_loop

from ..databases import Place
from .kit import LONGEST, known_texts, record, run_of, said, working

THREE_DAYS = 3 * 86_400
NOW = datetime(2026, 11, 16, tzinfo=UTC)


async def execute(place: Place, sql: str) -> None:
    """Change what a clock has left in the database."""

    def script() -> Script[None]:
        yield Statement(sql)

    async with place.open() as store:
        await store._database.write(script)


@in_event_loop
async def test_what_a_fast_clock_has_queued_is_learned_when_it_is_right_again(shared_place: Place) -> None:
    async with shared_place.open() as store:
        conversation = await record(store, "I went to the zoo")
    await execute(shared_place, f"UPDATE memory_queue SET available_at = available_at + {THREE_DAYS}")
    async with working(shared_place) as (store, _):
        assert await store.drain(LONGEST) == Coverage(remembered=1)
        assert (await run_of(store, conversation)).status == "done"


@in_event_loop
async def test_a_lease_of_a_fast_clock_is_over_when_it_is_right_again(shared_place: Place) -> None:
    async with shared_place.open() as store:
        await record(store, "I went to the zoo")
    taken = f"UPDATE memory_queue SET lease = 'somebody', available_at = available_at + {THREE_DAYS}"
    await execute(shared_place, taken)
    async with working(shared_place) as (store, _):
        assert await store.drain(LONGEST) == Coverage(remembered=1)
        assert await known_texts(store) == ["I went to the zoo"]


@in_event_loop
async def test_a_backoff_of_some_minutes_is_waited_for(shared_place: Place) -> None:
    async with shared_place.open() as store:
        await record(store, "I went to the zoo")
    await execute(shared_place, "UPDATE memory_queue SET available_at = available_at + 300")
    async with shared_place.open() as store:
        request = runs.ClaimRequest("default", "lease", 60.0, column_now())
        take = partial(runs.claim, store._database.queue, request)
        assert await store._database.write(take) == []


@in_event_loop
async def test_what_waits_for_a_quiet_by_a_fast_clock_is_learned(shared_place: Place) -> None:
    async with shared_place.open() as store:
        talk = await store.open_conversation("agent", "user")
        await store.append_messages(talk.conversation_id, said("I went to the zoo"), learn_after=300)
    await execute(shared_place, f"UPDATE conversations SET learn_at = learn_at + {THREE_DAYS}")
    async with working(shared_place) as (store, _):
        store.start()
        async with asyncio.timeout(LONGEST):
            while await store.coverage() != Coverage(remembered=1):  # noqa: ASYNC110 - no other way to know
                await asyncio.sleep(0.01)
        assert await known_texts(store) == ["I went to the zoo"]


@in_event_loop
async def test_stages_are_told_in_their_order_whatever_the_clock_said(shared_place: Place) -> None:
    async with working(shared_place) as (store, _):
        conversation = await record(store, "I went to the zoo")
        await store.drain(LONGEST)
    early = "UPDATE memory_run_stages SET finished_at = '2001-01-01T00:00:00.000000Z' WHERE stage = 'mind'"
    await execute(shared_place, early)
    async with shared_place.open() as store:
        run = await run_of(store, conversation)
        assert [stage.stage for stage in run.stages] == ["modification", "update", "mind"]


@in_event_loop
async def test_a_history_is_in_the_order_of_its_edits_whatever_the_clock_said(shared_place: Place) -> None:
    async with shared_place.open() as store:
        entry = await store.add_entry("agent", "user", "profile", "Lives in Rome")
        for home in ("Lives in Oslo", "Lives in Cairo"):
            entry = await store.edit_entry(entry.content_id, home)
    early = "UPDATE memory_contents SET learned_at = '2001-01-01T00:00:00.000000Z' WHERE retired_at IS NULL"
    await execute(shared_place, early)
    async with shared_place.open() as store:
        history = await store.get_history(entry.content_id)
        assert [each.text for each in history] == ["Lives in Rome", "Lives in Oslo", "Lives in Cairo"]
        why = await store.why(entry.content_id)
        assert why is not None
        assert [each.text for each in why.supersedes] == ["Lives in Oslo", "Lives in Rome"]


def entry_of(name: str, day: int, superseded_by: str | None) -> Entry:
    learned_at = NOW + timedelta(days=day)
    return Entry(name, "memory", "profile", name, learned_at, superseded_by=superseded_by)


def test_entries_with_several_precursors_are_in_the_order_of_time() -> None:
    newest, old = entry_of("newest", 9, None), entry_of("old", 3, "newest")
    other, oldest = entry_of("other", 2, "newest"), entry_of("oldest", 1, "old")
    assert by_succession([newest, old, other, oldest]) == [oldest, other, old, newest]


def test_an_entry_stands_before_the_one_that_took_its_place() -> None:
    newest, old = entry_of("newest", 0, None), entry_of("old", 9, "newest")
    oldest = entry_of("oldest", 5, "old")
    assert by_succession([newest, old, oldest]) == [oldest, old, newest]
