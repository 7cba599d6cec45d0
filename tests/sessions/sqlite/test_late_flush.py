"""Commits are flushed after the next process may write, and acknowledged after that."""

import asyncio
import errno
import os
import sqlite3
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from recollect import ConnectionLostError, SQLiteSession, StorageError
from recollect.sql.scripts import MakeScript, Script, Statement, run_all
from recollect.sql.sqlite import late_flush
from recollect.sql.sqlite.connection import connect
from recollect.sql.sqlite.engine import FileEngine
from recollect.testing.contract import in_event_loop, message, texts

from .test_turns import take_turn

LONGEST = 30  # seconds that a test waits for what should take a millisecond


class Disk:
    """What this process flushes, and writes to the log again. Flushes can be held back, and fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.flushes = 0
        self.written_again = 0  # bytes, from the beginning
        self.before: Callable[[], None] = lambda: None
        self._flush, self._write = os.fdatasync, os.pwrite
        monkeypatch.setattr(late_flush.os, "fdatasync", self._count_flush)
        monkeypatch.setattr(late_flush.os, "pwrite", self._count_write)

    def fail(self, times: int = 1) -> None:
        left = iter(range(times))

        def fail() -> None:
            if next(left, None) is not None:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

        self.before = fail

    def _count_flush(self, file: int) -> None:
        assert os.readlink(f"/proc/self/fd/{file}").endswith(".db-wal")
        self.before()
        self._flush(file)
        self.flushes += 1

    def _count_write(self, file: int, content: bytes, start: int) -> int:
        assert start in (0, self.written_again)
        self.written_again = start + len(content)
        return self._write(file, content, start)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@asynccontextmanager
async def opened(path: Path, **options: Any) -> AsyncIterator[SQLiteSession]:
    async with SQLiteSession("s", path, **options) as session:
        await session.add_items([message("before")])
        yield session


def level_of(session: SQLiteSession) -> int:
    """How much SQLite flushes itself: 2 each commit, 1 only what it must to keep the file whole."""
    assert isinstance(session._file, FileEngine)
    connection = session._file._writer._connection
    assert connection is not None
    ((level,),) = connection.execute("PRAGMA synchronous").fetchall()
    return int(level)


@in_event_loop
async def test_where_it_cannot_be_left_to_us_sqlite_flushes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(late_flush.os, "fdatasync")
    async with opened(path) as session:
        assert level_of(session) == 2


@in_event_loop
async def test_a_write_that_changes_nothing_is_flushed(path: Path, disk: Disk) -> None:
    """What it has found, another process may have written and not flushed yet."""
    async with SQLiteSession("s", path) as session:
        await session.clear_session()
        before = disk.flushes
        await session.clear_session()
        assert disk.flushes == before + 1


@in_event_loop
async def test_each_write_is_flushed(path: Path, disk: Disk) -> None:
    async with opened(path) as session:
        for number in range(1, 4):
            before = disk.flushes
            await session.add_items([message(number)])
            assert disk.flushes == before + 1
        assert level_of(session) == 1, "SQLite does not flush it a second time"


@in_event_loop
async def test_a_write_is_acknowledged_after_its_flush_and_others_write_meanwhile(
    path: Path, disk: Disk
) -> None:
    may_flush, begun = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        assert may_flush.wait(LONGEST)

    async with opened(path) as session:
        disk.before = hold
        writing = asyncio.create_task(session.add_items([message("late")]))
        assert await asyncio.to_thread(begun.wait, LONGEST)
        take_turn(path).leave()
        with closing(connect(str(path))) as other:
            other.execute("CREATE TABLE of_others (x)")  # raises if the file is locked
        await asyncio.sleep(0.05)
        assert not writing.done()
        may_flush.set()
        await writing
        assert texts(await session.get_items()) == ["before", "late"]


@in_event_loop
async def test_what_is_flushed_holds_the_write(path: Path, tmp_path: Path, disk: Disk) -> None:
    """The files as they are when the flush begins are what a power cut after it leaves."""

    def keep() -> None:
        # In a process of its own: one that closes a copy of the file drops the locks that SQLite has on it.
        subprocess.run(["cp", str(path), f"{path}-wal", str(flushed)], check=True)

    async with opened(path) as session:
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
    async with opened(path, durability="normal") as session:
        await session.add_items([message("a")])
        assert texts(await session.get_items()) == ["before", "a"]
    assert disk.flushes == 0


# --- disks that fail ---


@in_event_loop
async def test_after_a_flush_that_fails_the_whole_log_is_written_again(path: Path, disk: Disk) -> None:
    """The kernel takes for stored what it has failed to store, so a second flush alone would succeed."""
    async with opened(path) as session:
        disk.fail(times=1)
        with pytest.raises(ConnectionLostError, match=r"did not confirm .* may be stored or lost"):
            await session.add_items([message("unsure")])
        assert disk.written_again == os.stat(f"{path}-wal").st_size
        await session.add_items([message("after")])
        assert disk.written_again < os.stat(f"{path}-wal").st_size, "once is enough"
        assert texts(await session.get_items()) == ["before", "unsure", "after"]
        assert await asyncio.to_thread(is_whole, path)


@pytest.mark.parametrize("then", ["goes on", "reconnects"])
@in_event_loop
async def test_if_that_fails_too_the_next_write_does_it(path: Path, disk: Disk, then: str) -> None:
    async with opened(path) as session:
        disk.fail(times=2)
        with pytest.raises(ConnectionLostError):
            await session.add_items([message("unsure")])
        disk.written_again = 0
        if then == "reconnects":
            with pytest.raises(StorageError):
                await session._file.write(lose_connection)
            assert disk.written_again == 0
        await session.add_items([message("after")])
        assert disk.written_again == os.stat(f"{path}-wal").st_size
        await session.add_items([message("more")])
        assert disk.written_again < os.stat(f"{path}-wal").st_size
        assert texts(await session.get_items()) == ["before", "unsure", "after", "more"]


@in_event_loop
async def test_a_write_is_in_doubt_if_others_keep_the_log_from_being_repaired(
    path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_flush, "_LOCK_TIMEOUT", 0.01)
    with closing(connect(str(path))) as other:
        async with opened(path) as session:

            def lock_and_fail() -> None:
                disk.before = lambda: None
                other.execute("BEGIN IMMEDIATE")
                raise OSError(errno.EIO, os.strerror(errno.EIO))

            disk.before = lock_and_fail
            with pytest.raises(ConnectionLostError):
                await session.add_items([message("unsure")])
            other.execute("ROLLBACK")
            await session.add_items([message("after")])
            assert disk.written_again == os.stat(f"{path}-wal").st_size


@in_event_loop
async def test_jobs_keep_their_own_errors_if_the_flush_fails(path: Path, disk: Disk) -> None:
    async with opened(path) as session:
        async with writing_together(session, disk, (insert, insert, refuse, insert)) as together:
            disk.fail(times=2)
        unsure, done, refused, last = await asyncio.gather(*together, return_exceptions=True)
        assert (type(unsure), done, type(refused), last) == (ConnectionLostError, None, ValueError, None)


@in_event_loop
async def test_each_caller_gets_an_error_of_its_own(path: Path, disk: Disk) -> None:
    async with opened(path) as session:
        async with writing_together(session, disk, (insert, insert)) as together:
            disk.fail()
        errors = await asyncio.gather(*together, return_exceptions=True)
        assert [type(each) for each in errors] == [ConnectionLostError] * 2
        assert errors[0] is not errors[1]


def is_whole(path: Path) -> bool:
    with closing(connect(str(path))) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@in_event_loop
async def test_jobs_that_run_alone_are_flushed_once_each(path: Path, disk: Disk) -> None:
    async with opened(path) as session:
        async with writing_together(session, disk, (insert, refuse, insert)) as together:
            before = disk.flushes
        await asyncio.gather(*together, return_exceptions=True)
        assert disk.flushes == before + 3, "the first, and two of the others"


@in_event_loop
async def test_a_commit_is_flushed_though_the_next_job_loses_the_connection(path: Path, disk: Disk) -> None:
    async with opened(path) as session:
        async with writing_together(session, disk, (refuse, insert, lose_connection)) as together:
            before = disk.flushes
        refused, done, lost = await asyncio.gather(*together, return_exceptions=True)
        assert disk.flushes == before + 2, "of the first, and of the one that was done"
        assert (type(refused), done, type(lost)) == (ValueError, None, StorageError)


@asynccontextmanager
async def writing_together(
    session: SQLiteSession, disk: Disk, scripts: Sequence[MakeScript[None]]
) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Scripts that wait, so they are run together, and if one fails each alone. They begin at the end."""
    held, begun = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        assert held.wait(LONGEST)

    disk.before = hold
    first = asyncio.create_task(session._file.write(insert))
    assert await asyncio.to_thread(begun.wait, LONGEST)
    tasks = [asyncio.create_task(session._file.write(script)) for script in scripts]
    await asyncio.sleep(0.05)
    disk.before = lambda: None
    yield tasks
    held.set()
    await first


def insert() -> Script[None]:
    return run_all([Statement("CREATE TABLE IF NOT EXISTS t (x)"), Statement("INSERT INTO t VALUES (1)")])


def refuse() -> Script[None]:
    yield Statement("SELECT 1")
    raise ValueError("no")


def lose_connection() -> Script[None]:
    yield Statement("SELECT 1")
    raise sqlite3.DatabaseError("the file is damaged")
