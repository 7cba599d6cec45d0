"""Commits of processes that queue are flushed after the next one may write, and acknowledged after that."""

import asyncio
import errno
import os
import sqlite3
import subprocess
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from recollect import SQLiteSession, StorageError
from recollect.sql.scripts import Script, Statement, run_all
from recollect.sql.sqlite import late_flush
from recollect.sql.sqlite.connection import EngineOptions, connect, connect_writer
from recollect.testing.contract import in_event_loop, message, texts

from .test_turns import collide

LONGEST = 30  # seconds that a test waits for what should take a millisecond


class Disk:
    """The flushes of this process. They can be held back, and fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.flushes = 0
        self.before: Callable[[], None] = lambda: None
        self._flush = os.fdatasync
        monkeypatch.setattr(late_flush.os, "fdatasync", self._count)

    def _count(self, file: int) -> None:
        self.before()
        self._flush(file)
        self.flushes += 1


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@asynccontextmanager
async def queued(path: Path, **options: Any) -> AsyncIterator[SQLiteSession]:
    """A session that has met another process."""
    async with SQLiteSession("s", path, **options) as session:
        await session.add_items([message("before")])
        await collide(path, session)
        yield session


@in_event_loop
async def test_a_session_alone_leaves_flushing_to_sqlite(path: Path, disk: Disk) -> None:
    async with SQLiteSession("s", path) as session:
        await session.add_items([message("a")])
    assert disk.flushes == 0
    with closing(connect_writer(str(path), EngineOptions())) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,), "the level at which it flushes"


@in_event_loop
async def test_each_write_is_flushed(path: Path, disk: Disk) -> None:
    async with queued(path) as session:
        for number in range(1, 4):
            before = disk.flushes
            await session.add_items([message(number)])
            assert disk.flushes == before + 1


@in_event_loop
async def test_a_write_is_acknowledged_after_its_flush_and_others_write_meanwhile(
    path: Path, disk: Disk
) -> None:
    may_flush, begun = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        assert may_flush.wait(LONGEST)

    async with queued(path) as session:
        disk.before = hold
        writing = asyncio.create_task(session.add_items([message("late")]))
        assert await asyncio.to_thread(begun.wait, LONGEST)
        with closing(connect(str(path))) as other:
            other.execute("CREATE TABLE of_others (x)")  # raises if the file is locked
        await asyncio.sleep(0.05)
        assert not writing.done()
        may_flush.set()
        await writing
        assert texts(await session.get_items()) == ["before", "collided", "late"]


@in_event_loop
async def test_what_is_flushed_holds_the_write(path: Path, tmp_path: Path, disk: Disk) -> None:
    """The files as they are when the flush begins are what a power cut after it leaves."""

    def keep() -> None:
        # In a process of its own: one that closes a copy of the file drops the locks that SQLite has on it.
        subprocess.run(["cp", str(path), f"{path}-wal", str(flushed)], check=True)

    async with queued(path) as session:
        for number in range(5):
            flushed = tmp_path / str(number)
            flushed.mkdir()
            disk.before = keep
            await session.add_items([message(number)])
            disk.before = lambda: None
            async with SQLiteSession("s", flushed / path.name) as copy:
                assert texts(await copy.get_items(1)) == [str(number)]


@in_event_loop
async def test_nothing_is_flushed_for_those_who_do_not_want_it(path: Path, disk: Disk) -> None:
    async with queued(path, durability="normal") as session:
        await session.add_items([message("a")])
        assert texts(await session.get_items()) == ["before", "collided", "a"]
    assert disk.flushes == 0


@in_event_loop
async def test_a_flush_that_fails_is_reported_and_the_next_write_works(path: Path, disk: Disk) -> None:
    def fail() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async with queued(path) as session:
        disk.before = fail
        with pytest.raises(StorageError, match=r"did not confirm .* may be stored or lost"):
            await session.add_items([message("unsure")])
        await session.add_items([message("after")])
        assert disk.flushes > 0
        assert texts(await session.get_items())[-1] == "after", "SQLite flushes this one itself"


@in_event_loop
async def test_a_commit_is_flushed_though_the_next_job_loses_the_connection(path: Path, disk: Disk) -> None:
    held, begun = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        assert held.wait(LONGEST)

    async with queued(path) as session:
        write = session._file.write
        disk.before = hold
        first = asyncio.create_task(write(insert))
        assert await asyncio.to_thread(begun.wait, LONGEST)
        scripts = (refuse, insert, lose_connection)
        together = [asyncio.create_task(write(script)) for script in scripts]
        await asyncio.sleep(0.05)  # they wait, so they are run together, and then each alone
        disk.before, before = lambda: None, disk.flushes
        held.set()
        await first
        refused, done, lost = await asyncio.gather(*together, return_exceptions=True)
        assert disk.flushes == before + 2, "of the first, and of the one that was done"
        assert (type(refused), done, type(lost)) == (ValueError, None, StorageError)


def insert() -> Script[None]:
    return run_all([Statement("CREATE TABLE IF NOT EXISTS t (x)"), Statement("INSERT INTO t VALUES (1)")])


def refuse() -> Script[None]:
    yield Statement("SELECT 1")
    raise ValueError("no")


def lose_connection() -> Script[None]:
    yield Statement("SELECT 1")
    raise sqlite3.DatabaseError("the file is damaged")
