"""One file, two libraries: what the Agents SDK wrote opens here, what we wrote opens there."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import agents
import pytest
from agents.extensions.memory import AdvancedSQLiteSession, AsyncSQLiteSession, EncryptedSession

import recollect
from recollect import SQLiteSession, import_sdk_sessions
from recollect.testing.contract import ODD_ITEMS, in_event_loop, message, texts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def columns(path: Path, table: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(path) as connection:
        found = connection.execute(f"PRAGMA table_info({table})").fetchall()
    connection.close()
    return found


@in_event_loop
async def test_a_file_of_the_sdk_opens_and_continues_and_the_sdk_reads_it_again(path: Path) -> None:
    theirs = agents.SQLiteSession("s", path)
    await theirs.add_items(ODD_ITEMS)  # type: ignore[arg-type]
    ours = SQLiteSession("s", path)
    assert await ours.get_items() == ODD_ITEMS
    await ours.add_items([message("from us")])
    assert await theirs.get_items() == [*ODD_ITEMS, message("from us")]
    assert await ours.pop_item() == message("from us")
    await theirs.add_items([message("from them")])  # type: ignore[list-item]
    assert (await ours.get_items())[-1] == message("from them")
    await ours.clear_session()
    assert await theirs.get_items() == []
    theirs.close()
    ours.close()


@in_event_loop
async def test_a_file_of_ours_opens_in_the_sdk(path: Path) -> None:
    async with SQLiteSession("s", path) as ours:
        await ours.add_items(ODD_ITEMS)
    theirs = agents.SQLiteSession("s", path)
    assert await theirs.get_items() == ODD_ITEMS
    await theirs.add_items([message("from them")])  # type: ignore[list-item]
    theirs.close()
    async with SQLiteSession("s", path) as ours:
        assert await ours.get_items(limit=1) == [message("from them")]


@in_event_loop
async def test_both_write_at_once_without_an_error(path: Path) -> None:
    theirs, ours = agents.SQLiteSession("s", path), SQLiteSession("s", path)

    async def write(session: Any, name: str) -> None:
        for n in range(20):
            await session.add_items([message(f"{name} {n}")])

    await asyncio.gather(write(theirs, "they"), write(ours, "we"))
    found = texts(await ours.get_items())
    assert [text for text in found if text.startswith("we")] == [f"we {n}" for n in range(20)]
    assert [text for text in found if text.startswith("they")] == [f"they {n}" for n in range(20)]
    theirs.close()
    ours.close()


@in_event_loop
async def test_the_tables_are_those_of_the_sdk(tmp_path: Path) -> None:
    theirs = agents.SQLiteSession("s", tmp_path / "theirs.db")
    theirs.close()
    async with SQLiteSession("s", tmp_path / "ours.db") as ours:
        await ours.get_items()
    for table in ("agent_sessions", "agent_messages"):
        assert columns(tmp_path / "ours.db", table) == columns(tmp_path / "theirs.db", table)


@in_event_loop
async def test_an_index_in_reading_order_is_there_whoever_made_the_file(path: Path) -> None:
    """Older files have one by time. It stays, and ours is made beside it; a second like it is not."""
    connection = sqlite3.connect(path)
    connection.executescript("""
        CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY,
            created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
        CREATE TABLE agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
            message_data TEXT NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
        CREATE INDEX idx_agent_messages_session_id ON agent_messages (session_id, created_at);
    """)
    connection.close()
    async with SQLiteSession("s", path) as session:
        await session.add_items([message("a")])
    assert indexes(path) == {
        "idx_agent_messages_session_id": ["session_id", "created_at"],
        "recollect_agent_messages_by_session": ["session_id", "id"],
    }


@in_event_loop
async def test_no_second_index_beside_the_sdks_own(path: Path) -> None:
    agents.SQLiteSession("s", path).close()
    async with SQLiteSession("s", path) as session:
        await session.add_items([message("a")])
    assert indexes(path) == {"idx_agent_messages_session_id": ["session_id", "id"]}


def indexes(path: Path) -> dict[str, list[str]]:
    connection = sqlite3.connect(path)
    names = [row[1] for row in connection.execute("PRAGMA index_list(agent_messages)")]
    found = {name: [row[2] for row in connection.execute(f"PRAGMA index_info({name})")] for name in names}
    connection.close()
    return found


# --- inside the SDK's own wrappers ---


@in_event_loop
async def test_works_inside_the_sdks_encrypted_session(path: Path) -> None:
    ours = SQLiteSession("s", path)
    wrapped = EncryptedSession("s", ours, encryption_key="secret", ttl=600)
    await wrapped.add_items([message("a"), message("b"), message("c")])  # type: ignore[list-item]
    assert texts(await wrapped.get_items()) == ["a", "b", "c"]  # type: ignore[arg-type]
    assert texts(await wrapped.get_items(limit=2)) == ["b", "c"]  # type: ignore[arg-type]
    assert await wrapped.pop_item() == message("c")
    assert all("__enc__" in item for item in await ours.get_items())
    await wrapped.clear_session()
    assert await ours.get_items() == []
    ours.close()


@pytest.mark.parametrize(
    "settings",
    [recollect.SessionSettings(limit=2), agents.SessionSettings(limit=2), {"limit": 2}],
    ids=["ours", "theirs", "a dict"],
)
@in_event_loop
async def test_settings_hold_inside_the_sdks_encrypted_session(path: Path, settings: Any) -> None:
    ours = SQLiteSession("s", path, session_settings=settings)
    wrapped = EncryptedSession("s", ours, encryption_key="secret", ttl=600)
    await wrapped.add_items([message("a"), message("b"), message("c")])  # type: ignore[list-item]
    assert texts(await wrapped.get_items()) == ["b", "c"]  # type: ignore[arg-type]
    ours.close()


# --- moving in ---


@in_event_loop
async def test_imports_every_session_of_an_sdk_file(path: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        theirs = agents.SQLiteSession(name, path)
        await theirs.add_items([message(f"{name}{n}") for n in range(3)])  # type: ignore[misc]
        theirs.close()
    asynchronous = AsyncSQLiteSession("c", path)
    await asynchronous.add_items([message("c0")])  # type: ignore[list-item]
    await asynchronous.close()
    target = tmp_path / "ours.db"
    report = await import_sdk_sessions(path, lambda session_id: SQLiteSession(session_id, target))
    assert (report.sessions, report.items, report.corrupt_rows) == (3, 7, 0)
    async with SQLiteSession("b", target) as session:
        assert texts(await session.get_items()) == ["b0", "b1", "b2"]
        await session.add_items([message("since then")])
    again = await import_sdk_sessions(path, lambda session_id: SQLiteSession(session_id, target))
    assert (again.sessions, again.sessions_left_alone) == (0, 3)
    async with SQLiteSession("b", target) as session:
        assert texts(await session.get_items()) == ["b0", "b1", "b2", "since then"]


@in_event_loop
async def test_imports_the_branches_of_an_advanced_file(path: Path, tmp_path: Path) -> None:
    theirs = AdvancedSQLiteSession(session_id="s", db_path=path, create_tables=True)
    await theirs.add_items([message("one"), message("two"), message("three")])  # type: ignore[list-item]
    await theirs.create_branch_from_turn(2, "other")
    await theirs.add_items([message("two again")])  # type: ignore[list-item]
    theirs.close()
    target = tmp_path / "ours.db"
    await import_sdk_sessions(path, lambda session_id: SQLiteSession(session_id, target))
    async with SQLiteSession("s", target) as main, SQLiteSession("s:other", target) as branch:
        assert texts(await main.get_items()) == ["one", "two", "three"]
        assert texts(await branch.get_items()) == ["one", "two again"]


@in_event_loop
async def test_an_import_counts_corrupt_rows_and_takes_the_rest(path: Path, tmp_path: Path) -> None:
    theirs = agents.SQLiteSession("s", path)
    await theirs.add_items([message("a")])  # type: ignore[list-item]
    theirs.close()
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO agent_messages (session_id, message_data) VALUES ('s', 'bad')")
    connection.commit()
    connection.close()
    report = await import_sdk_sessions(path, lambda name: SQLiteSession(name, tmp_path / "ours.db"))
    assert (report.items, report.corrupt_rows) == (1, 1)


@pytest.mark.parametrize("make", ["nothing", "folder", "text", "other"])
@in_event_loop
async def test_what_is_no_sdk_file_is_a_clear_error(tmp_path: Path, make: str) -> None:
    source = tmp_path / "source"
    if make == "folder":
        source.mkdir()
    elif make == "text":
        source.write_text("text " * 1000)
    elif make == "other":
        connection = sqlite3.connect(source)
        connection.execute("CREATE TABLE x (y)")
        connection.close()
    with pytest.raises(ValueError, match="not a file of the Agents SDK"):
        await import_sdk_sessions(source, lambda name: SQLiteSession(name, tmp_path / "ours.db"))
    assert not (tmp_path / "ours.db").exists()
