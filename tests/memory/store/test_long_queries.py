"""Queries over many rows do not block the event loop, and scan a bounded number of rows."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import date
from functools import partial
from pathlib import Path

import pytest

from recollect.memory.database import conversations, pages
from recollect.memory.database.access import MemoryDatabase
from recollect.memory.run import Days
from recollect.models.values import MOST_TOKENS
from recollect.providers.openai.database.turns import ChatTurns
from recollect.sql.scripts import Script, Statement
from recollect.sql.sqlite.fetcher import LONG_READS, run_on_long_thread
from recollect.testing.contract import in_event_loop

from ..databases import Place

DAYS = Days(date(2026, 3, 1), date(2026, 3, 1))


@asynccontextmanager
async def busy_threads(number: int = LONG_READS) -> AsyncIterator[None]:
    """So many of the threads for long queries do not get on meanwhile."""
    go_on = threading.Event()
    work = [asyncio.ensure_future(run_on_long_thread(go_on.wait)) for _ in range(number)]
    try:
        yield
    finally:
        go_on.set()
        await asyncio.gather(*work)


async def needs_a_long_thread(call: Callable[[], Awaitable[object]]) -> bool:
    """Whether a call waits for a thread for long queries, while all of them are busy."""
    async with busy_threads():
        task = asyncio.ensure_future(call())
        # A call that needs no such thread ends at its own pace; a machine may be slow.
        await asyncio.wait({task}, timeout=0.2)
        is_waiting = not task.done()
    await task
    return is_waiting


@pytest.mark.parametrize("kind", ["memory", "file"])
@in_event_loop
async def test_what_looks_through_much_is_not_begun_on_the_event_loop(kind: str, tmp_path: Path) -> None:
    url = ":memory:" if kind == "memory" else str(tmp_path / "memory.db")
    async with Place(url).open() as store, ChatTurns(url) as turns:
        await store.record_conversation("desk", "ann", [{"role": "user", "content": "hay"}])
        async with busy_threads():
            await asyncio.wait_for(store.list_conversations("desk", "ann"), 60)
        for call in (
            lambda: store.find_conversations("needle"),
            lambda: store.find_conversations(agent_id="desk"),
            lambda: store.spent_by_day(DAYS),
            lambda: turns.spent_by_day("default", DAYS, "model", 10),
            store.coverage,
        ):
            assert await needs_a_long_thread(call)


@pytest.mark.parametrize("kind", ["memory", "file"])
@in_event_loop
async def test_a_slow_query_holds_up_no_other_one(kind: str, tmp_path: Path) -> None:
    """The slow ones do not end before the others have: their threads are held."""
    url = ":memory:" if kind == "memory" else str(tmp_path / "memory.db")
    async with Place(url).open() as store:
        await store.record_conversation("desk", "ann", [{"role": "user", "content": "hay"}])
        async with busy_threads(LONG_READS - 1):
            await asyncio.wait_for(store.coverage(), 60)
            assert len(await asyncio.wait_for(store.list_conversations("desk", "ann"), 60)) == 1


async def found(database: MemoryDatabase, wanted: pages.ConversationSearch) -> tuple[list[str], str | None]:
    sql, parameters = pages.statement_for(database.dialect, wanted, 10)
    rows = await database.fetch(sql, parameters, conversations.rows_from)
    last = await database.fetch(*pages.last_scanned(wanted), pages.position_from)
    return [row.conversation_id for row in rows], last


@in_event_loop
async def test_a_page_reads_only_so_many_messages_and_says_where_to_go_on(place: Place) -> None:
    async with place.open() as store:
        for name, count in (("first", 1), ("long", 5), ("short", 1), ("last", 2)):
            said = [{"role": "user", "content": "A needle."}] * count
            await store.record_conversation("desk", "ann", said, conversation_id=name)
        names_by_page, edge = [], None
        while True:
            wanted = pages.ConversationSearch("tenant", "default", edge, words="needle", max_messages=3)
            names, last = await found(store._database, wanted)
            names_by_page.append(names)
            if last is None:
                break
            edge = pages.parse_position(last)
        assert names_by_page == [["last", "short"], ["long"], ["first"]]


@in_event_loop
async def test_a_conversation_of_an_absurd_length_stops_no_search(place: Place) -> None:
    async with place.open() as store:
        for name in ("a", "b", "c"):
            await store.record_conversation(
                "desk", "ann", [{"role": "user", "content": "A needle."}], conversation_id=name
            )
        await store._database.write(partial(_alone, f"UPDATE conversations SET next_index = {2**62}"))
        seen, before = [], None
        while True:
            page = await store.find_conversations("needle", before=before)
            seen += [told["conversation_id"] for told in page.conversations]
            before = page.position
            if before is None:
                break
        assert sorted(seen) == ["a", "b", "c"]


@in_event_loop
async def test_numbers_that_are_no_counts_do_not_spoil_the_sum_of_a_day(place: Place) -> None:
    """Such as an older version took from an import."""
    async with place.open() as store:
        for name in ("a", "b", "c"):
            await store.record_conversation(
                "desk", "ann", [{"role": "user", "content": "hay"}], conversation_id=name
            )
        await store._database.write(partial(_alone, _FAILURES))
        (spent,) = await store.spent_by_day(DAYS)
        assert (spent.usage.requests, spent.usage.input_tokens) == (3, 3 * MOST_TOKENS)


_FAILURES = (
    "INSERT INTO memory_run_failures (run_id, tenant, attempt, stage, failed_at, error, raw_response,"
    " prompt_tokens, completion_tokens) SELECT run_id, tenant, 1, 'mind', '2026-03-01T12:00:00.000000Z', '',"
    " '', 4611686018427387904, 0 FROM memory_runs"
)


def _alone(sql: str) -> Script[None]:
    yield Statement(sql)
