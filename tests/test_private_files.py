"""Files with contents are for their owner alone from the moment they exist, whatever the umask allows."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from recollect import EventLog, MemoryStore, SQLAlchemySession, SQLiteSession, export_session
from recollect.cli.database_files import copy_file
from recollect.private_files import create_private, replace_privately
from recollect.testing.contract import in_event_loop, message


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """The most permissive umask: nothing but the code itself narrows a mode."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "there" / "file.db"


def modes_in(folder: Path) -> dict[str, int]:
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}


PRIVATE_WITH_LOG = {"file.db": 0o600, "file.db-wal": 0o600, "file.db-shm": 0o600}


@in_event_loop
async def test_the_file_of_a_session_and_its_log_are_private(path: Path) -> None:
    async with SQLiteSession("s", path) as session:
        await session.add_items([message("a")])
        assert modes_in(path.parent) == PRIVATE_WITH_LOG


@in_event_loop
async def test_the_file_of_a_memory_store_is_private(path: Path) -> None:
    async with MemoryStore(path, workers=0, embedder=None) as store:
        await store.add_entry("a", "u", "profile", "Lives in Lisbon.")
        assert modes_in(path.parent) == PRIVATE_WITH_LOG


@in_event_loop
async def test_the_file_of_an_event_log_is_private(path: Path) -> None:
    async with EventLog(path) as log:
        assert await log.count("s") == 0
        assert modes_in(path.parent) == PRIVATE_WITH_LOG


@in_event_loop
async def test_the_file_of_a_sqlalchemy_session_is_private(path: Path) -> None:
    path.parent.mkdir()
    url = f"sqlite+aiosqlite:///{path}"
    async with SQLAlchemySession.from_url("s", url=url, create_tables=True) as session:
        await session.add_items([message("a")])
        assert modes_in(path.parent) == PRIVATE_WITH_LOG


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660])
@in_event_loop
async def test_a_file_that_exists_keeps_its_mode(path: Path, mode: int) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (a)")
    path.chmod(mode)
    async with SQLiteSession("s", path) as session:
        await session.add_items([message("a")])
        assert set(modes_in(path.parent).values()) == {mode}


@pytest.mark.parametrize("name", ["history.json", "history.jsonl"])
@in_event_loop
async def test_an_exported_session_is_private(tmp_path: Path, name: str) -> None:
    async with SQLiteSession("s") as session:
        await session.add_items([message("a")])
        await export_session(session, tmp_path / "there" / name)
    assert modes_in(tmp_path / "there") == {name: 0o600}


@in_event_loop
async def test_an_exported_user_is_private(tmp_path: Path) -> None:
    async with MemoryStore(":memory:", workers=0, embedder=None) as store:
        await store.add_entry("a", "u", "profile", "Lives in Lisbon.")
        await store.export_user_to(tmp_path / "there" / "u.jsonl", "u")
    assert modes_in(tmp_path / "there") == {"u.jsonl": 0o600}


def test_a_backup_is_private_even_of_a_file_that_is_not(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (a)")
    path.chmod(0o644)
    copy_file(path, tmp_path / "copies" / "copy.db")
    assert modes_in(tmp_path / "copies") == {"copy.db": 0o600}


def test_a_failed_replacement_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("before")

    def fail() -> None:
        with replace_privately(target) as temporary:
            temporary.write_text("half")
            raise RuntimeError("in between")

    with pytest.raises(RuntimeError):
        fail()
    assert (target.read_text(), os.listdir(tmp_path)) == ("before", ["target"])


def test_a_link_still_leads_to_the_file_that_was_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with replace_privately(tmp_path / "link") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_device_is_written_to_and_not_replaced() -> None:
    with replace_privately("/dev/null") as target:
        assert target == Path("/dev/null")


def test_creating_a_file_that_exists_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    (tmp_path / "file").chmod(0o644)
    create_private(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "kept"
    assert modes_in(tmp_path) == {"file": 0o644}
