"""Files that cannot be written to: whatever they hold is read, and a write is a `ReadOnlyError`."""

import asyncio
import os
import shutil
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import agents
import pytest
from agents.extensions.memory import AdvancedSQLiteSession as TheirAdvancedSession

from recollect import (
    AdvancedSQLiteSession,
    EventLog,
    MemoryStore,
    ReadOnlyError,
    SchemaMismatchError,
    SessionManager,
    SessionMetadata,
    SQLiteSession,
    import_sdk_sessions,
)
from recollect.sql.sqlite.registry import close_all
from recollect.testing.contract import in_event_loop, message, texts

from .test_bad_input import as_nobody, run_sql

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become somebody else")

# The folder can be written to, so that SQLite can keep its log beside the file; or it cannot, as on a CD.
FOLDERS = pytest.mark.parametrize("folder_mode", [0o777, 0o555], ids=["file", "file and folder"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    for part in (*tmp_path.parents, tmp_path):
        if str(part).startswith("/tmp/"):
            os.chmod(part, 0o755)
    return folder / "sessions.db"


def use_read_only(path: Path, folder_mode: int, use: Callable[[], Awaitable[None]]) -> None:
    """Use the file as somebody who may read it, and not write to it."""
    path.chmod(0o444)
    path.parent.chmod(folder_mode)
    before = path.read_bytes()

    assert as_nobody(lambda: asyncio.run(_awaited(use))) == 0
    assert path.read_bytes() == before


async def _awaited(use: Callable[[], Awaitable[None]]) -> None:
    await use()


async def every_write_is_refused(session: Any) -> None:
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: session.add_items([message("refused")]),
        session.pop_item,
        session.clear_session,
        lambda: session.set_metadata(SessionMetadata(title="refused")),
        lambda: session.transform_items(lambda _: []),
        lambda: session.set_note("new", {}, 0),
        lambda: session.take_lease("me", 1),
    ]
    for call in calls:
        with pytest.raises(ReadOnlyError):
            await call()


# --- what the SDK has written ---


def write_as_sdk(path: Path) -> None:
    theirs = agents.SQLiteSession("s", path)
    asyncio.run(theirs.add_items([message("a"), message("b")]))  # type: ignore[list-item]
    theirs.close()


@FOLDERS
def test_a_file_of_the_sdk_is_read(path: Path, folder_mode: int) -> None:
    write_as_sdk(path)

    async def use() -> None:
        session = SQLiteSession("s", path)
        assert texts(await session.get_items()) == ["a", "b"]
        assert texts(await session.get_items(limit=1)) == ["b"]
        assert texts([row.item for row in await session.read_after(0)]) == ["a", "b"]
        assert await session.get_metadata() == SessionMetadata()
        assert await session.get_note("n") is None
        await every_write_is_refused(session)
        assert texts(await session.get_items()) == ["a", "b"]
        manager = SessionManager(path)
        (info,) = (await manager.list_sessions()).sessions
        assert (info.session_id, info.item_count) == ("s", 2)
        with pytest.raises(ReadOnlyError):
            await manager.cleanup_old_sessions()

    use_read_only(path, folder_mode, use)


@FOLDERS
def test_branches_of_a_file_of_the_sdk_are_read(path: Path, folder_mode: int) -> None:
    async def write() -> None:
        theirs = TheirAdvancedSession(session_id="s", db_path=path, create_tables=True)
        await theirs.add_items([message("one"), message("two")])  # type: ignore[list-item]
        await theirs.create_branch_from_turn(2, "other")
        theirs.close()

    asyncio.run(write())

    async def use() -> None:
        session = AdvancedSQLiteSession(session_id="s", db_path=path)
        assert texts(await session.get_items(branch_id="main")) == ["one", "two"]
        assert len(await session.get_conversation_turns("main")) == 2
        with pytest.raises(ReadOnlyError):
            await session.add_items([message("refused")])

    use_read_only(path, folder_mode, use)


@FOLDERS
def test_a_file_of_the_sdk_is_imported(path: Path, folder_mode: int) -> None:
    write_as_sdk(path)

    async def use() -> None:
        target = SQLiteSession("s")
        assert (await import_sdk_sessions(path, lambda _: target)).items == 2
        assert texts(await target.get_items()) == ["a", "b"]

    use_read_only(path, folder_mode, use)


# --- what we have written, and what others have ---


@FOLDERS
def test_our_own_file_is_read(path: Path, folder_mode: int) -> None:
    async def write() -> None:
        async with SQLiteSession("s", path, metadata=SessionMetadata("ann", title="kept")) as session:
            await session.add_items([message("a")])
            await session.set_note("n", {"a": 1}, 0)

    asyncio.run(write())
    close_all()  # leaves no log behind

    async def use() -> None:
        session = SQLiteSession("s", path)
        assert texts(await session.get_items()) == ["a"]
        assert (await session.get_metadata()).title == "kept"
        note = await session.get_note("n")
        assert note is not None
        assert note.data == {"a": 1}
        await every_write_is_refused(session)

    use_read_only(path, folder_mode, use)


@FOLDERS
def test_a_file_without_our_tables_is_empty(path: Path, folder_mode: int) -> None:
    run_sql(path, "CREATE TABLE others (a)")

    async def use() -> None:
        session = SQLiteSession("s", path)
        assert await session.get_items() == []
        await every_write_is_refused(session)
        assert (await SessionManager(path).list_sessions()).sessions == []
        assert await EventLog(path).count("s") == 0
        store = MemoryStore(path, workers=0, embedder=None)
        assert await store.list_conversations() == []
        with pytest.raises(ReadOnlyError):
            await store.add_entry("a", "u", "profile", "Lives in Lisbon.")

    use_read_only(path, folder_mode, use)


@FOLDERS
def test_tables_of_another_shape_are_named_here_too(path: Path, folder_mode: int) -> None:
    run_sql(path, "CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, body TEXT)")

    async def use() -> None:
        with pytest.raises(SchemaMismatchError, match=r"'agent_messages'.*message_data"):
            await SQLiteSession("s", path).get_items()

    use_read_only(path, folder_mode, use)


# --- files that need to be written to before they can be read ---


def test_a_log_that_cannot_be_read_is_not_left_out(path: Path, tmp_path: Path) -> None:
    """The newest items may be in it."""
    source = tmp_path / "source.db"

    @in_event_loop
    async def write() -> None:
        async with SQLiteSession("s", source) as session:
            await session.add_items([message("a")])
            shutil.copy(source, path)
            shutil.copy(f"{source}-wal", f"{path}-wal")

    write()
    Path(f"{path}-wal").chmod(0o444)

    async def use() -> None:
        with pytest.raises(ReadOnlyError, match="write-ahead log"):
            await SQLiteSession("s", path).get_items()

    use_read_only(path, 0o555, use)


@FOLDERS
def test_a_reader_sees_what_others_write_meanwhile(path: Path, folder_mode: int) -> None:
    write_as_sdk(path)
    path.chmod(0o444)
    path.parent.chmod(folder_mode)
    read, written = os.pipe(), os.pipe()

    async def use() -> None:
        session = SQLiteSession("s", path)
        assert texts(await session.get_items()) == ["a", "b"]
        os.write(read[1], b"x")
        os.read(written[0], 1)
        assert texts(await session.get_items()) == ["a", "b", "c"]

    def write_meanwhile() -> None:
        os.read(read[0], 1)
        theirs = agents.SQLiteSession("s", path)
        asyncio.run(theirs.add_items([message("c")]))  # type: ignore[list-item]
        theirs.close()
        os.write(written[1], b"x")

    writer = threading.Thread(target=write_meanwhile)
    writer.start()
    try:
        assert as_nobody(lambda: asyncio.run(use())) == 0
    finally:
        os.close(read[1])  # ends the wait of the writer, if the reader has failed
        writer.join(30)
