"""The history tools on sessions with the four methods and nothing else: the SDK's, and those of users."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import agents
import pytest
from agents.extensions.memory import AsyncSQLiteSession

from recollect import (
    HistoryLostError,
    InvalidItemError,
    SQLiteSession,
    compress_history,
    export_session,
    import_sdk_sessions,
    import_session,
    repair,
    reset_session,
    undo_items,
    undo_turn,
)
from recollect.testing.contract import in_event_loop, message, texts

CALL = {"type": "function_call", "call_id": "c1", "name": "look_up", "arguments": "{}"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "theirs.db"


@asynccontextmanager
async def holding(path: Path, items: list[Any]) -> AsyncIterator[Any]:
    """A session of the SDK with these items."""
    session = agents.SQLiteSession("s", path)
    await session.add_items(items)
    try:
        yield session
    finally:
        session.close()


# --- each tool works, and its result says that it was not atomic ---


@in_event_loop
async def test_compress(path: Path) -> None:
    async with holding(path, [message(n) for n in range(9)]) as session:
        counts = await compress_history(session, target_count=3)
        before, after = counts
        assert (before, after, counts.atomic) == (9, 3, False)
        assert texts(await session.get_items()) == ["6", "7", "8"]


@in_event_loop
async def test_undo(path: Path) -> None:
    async with holding(path, [message(n) for n in range(4)]) as session:
        removed = await undo_items(session, 1)
        assert (removed, removed.atomic) == ([message(3)], False)
        removed = await undo_turn(session)
        assert (removed, removed.atomic) == ([message(2)], False)
        assert texts(await session.get_items()) == ["0", "1"]
        assert await undo_items(session, 7) == [message(0), message(1)]
        assert await session.get_items() == []


@in_event_loop
async def test_an_undo_leaves_the_rows_that_stay_alone(path: Path) -> None:
    """So a crash in between costs nothing but what was to go."""

    def ids() -> list[int]:
        with sqlite3.connect(path) as connection:
            return [row[0] for row in connection.execute("SELECT id FROM agent_messages ORDER BY id")]

    async with holding(path, [message(n) for n in range(4)]) as session:
        before = ids()
        await undo_items(session, 2)
        assert ids() == before[:2]


@in_event_loop
async def test_reset(path: Path) -> None:
    async with holding(path, [message("old")]) as session:
        count = await reset_session(session, [message("new"), message("er")])
        assert (count, count.atomic) == (2, False)
        assert texts(await session.get_items()) == ["new", "er"]
        assert await reset_session(session) == 0
        assert await session.get_items() == []


@in_event_loop
async def test_import(path: Path, tmp_path: Path) -> None:
    async with SQLiteSession("ours") as ours, holding(path, [message("old")]) as session:
        await ours.add_items([message("a"), message("b")])
        await export_session(ours, tmp_path / "history.json")
        count = await import_session(session, tmp_path / "history.json")
        assert (count, count.atomic) == (2, False)
        assert texts(await session.get_items()) == ["a", "b"]


@in_event_loop
async def test_repair(path: Path) -> None:
    async with holding(path, [message("a"), CALL, message("b")]) as session:
        report = await repair(session)
        assert (report.unanswered_calls, report.atomic) == ([CALL], False)
        assert texts(await session.get_items()) == ["a", "b"]


@in_event_loop
async def test_moving_into_sessions_of_the_sdk(path: Path, tmp_path: Path) -> None:
    async with holding(path, [message("a"), message("b")]):
        target = AsyncSQLiteSession("s", tmp_path / "target.db")
        for sessions in (1, 0):
            report = await import_sdk_sessions(path, lambda _: target)
            assert (report.sessions, report.atomic) == (sessions, False)
        assert texts(await target.get_items()) == ["a", "b"]  # type: ignore[arg-type]
        await target.close()


@in_event_loop
async def test_results_of_our_own_sessions_say_that_they_were_atomic() -> None:
    async with SQLiteSession("s") as session:
        await session.add_items([message(n) for n in range(5)])
        assert (await compress_history(session, 4)).atomic
        assert (await undo_items(session)).atomic
        assert (await repair(session)).atomic
        assert (await reset_session(session)).atomic


# --- what can go wrong ---


@in_event_loop
async def test_a_setting_does_not_hide_items_from_a_tool(path: Path) -> None:
    async with holding(path, [message(n) for n in range(5)]) as session:
        session.session_settings = agents.SessionSettings(limit=1)
        assert await compress_history(session, 4) == (5, 4)
        assert texts(await session.get_items(limit=10)) == ["1", "2", "3", "4"]


@in_event_loop
async def test_a_bad_item_is_refused_before_anything_is_cleared(path: Path) -> None:
    async with holding(path, [message("kept")]) as session:
        with pytest.raises(InvalidItemError):
            await reset_session(session, [{"role": "user", "content": {1, 2}}])
        assert texts(await session.get_items()) == ["kept"]


@in_event_loop
async def test_changes_at_once_wait_for_each_other(path: Path) -> None:
    async with holding(path, [message(n) for n in range(20)]) as session:
        other = agents.SQLiteSession("s", path)
        await asyncio.gather(*(undo_items(each, 1) for each in [session, other] * 5))
        assert texts(await session.get_items()) == [str(n) for n in range(10)]
        other.close()


class Refusing:
    """A session of a user, which refuses batches of one length."""

    session_id = "own"
    session_settings = None

    def __init__(self, items: list[Any], refused: int) -> None:
        self.items = items
        self.refused = refused
        self.adding = asyncio.Event()
        self.may_add = asyncio.Event()
        self.may_add.set()

    async def get_items(self, limit: int | None = None) -> list[Any]:
        return self.items[-limit:] if limit else list(self.items)

    async def add_items(self, items: list[Any]) -> None:
        self.adding.set()
        await self.may_add.wait()
        if len(items) == self.refused:
            raise OSError("full")
        self.items += items

    async def pop_item(self) -> Any:
        return self.items.pop() if self.items else None

    async def clear_session(self) -> None:
        self.items.clear()


@in_event_loop
async def test_a_session_that_refuses_the_new_history_gets_the_old_one_back() -> None:
    session = Refusing([message("old"), message("er")], refused=1)
    with pytest.raises(OSError, match="full"):
        await reset_session(session, [message("new")])
    assert texts(session.items) == ["old", "er"]


@in_event_loop
async def test_a_session_that_takes_nothing_any_more_leaves_the_items_in_the_error() -> None:
    session = Refusing([message("my secret")], refused=1)
    with pytest.raises(HistoryLostError, match="'own' was cleared") as lost:
        await reset_session(session, [message("new")])
    assert lost.value.items == [message("my secret")]
    assert "my secret" not in str(lost.value)
    assert isinstance(lost.value.__cause__, OSError)


@in_event_loop
async def test_a_cancelled_change_is_finished_first() -> None:
    session = Refusing([message("old")], refused=7)
    session.may_add.clear()
    changing = asyncio.ensure_future(reset_session(session, [message("new")]))
    await session.adding.wait()
    changing.cancel()
    session.may_add.set()
    with pytest.raises(asyncio.CancelledError):
        await changing
    assert texts(session.items) == ["new"]
