"""The engine beneath: one for each file, shared, light, and gone when nobody needs it."""

import asyncio
import gc
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recollect import DatabaseBusyError, Item, SQLiteSession
from recollect.sql.sqlite.connection import EngineOptions, connect_writer
from recollect.sql.sqlite.writer import Writer
from recollect.testing.contract import in_event_loop, message, texts

from .test_processes import open_files, wait_until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@in_event_loop
async def test_a_thousand_sessions_hold_few_handles_and_threads(path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    sessions = [SQLiteSession(f"s{n}", path) for n in range(1000)]
    await asyncio.gather(*(session.add_items([message("a")]) for session in sessions))
    assert await asyncio.gather(*(session.get_items() for session in sessions)) == [[message("a")]] * 1000
    after = len(os.listdir("/proc/self/fd")), threading.active_count()
    assert after[0] - before[0] < 16
    assert after[1] - before[1] < 4
    for session in sessions:
        session.close()


@in_event_loop
async def test_the_file_is_closed_soon_after_its_last_session(path: Path) -> None:
    first, second = SQLiteSession("a", path), SQLiteSession("b", path)
    await first.add_items([message("a")])
    first.close()
    await asyncio.sleep(0.6)
    assert open_files(path), "another session uses it"
    second.close()
    assert wait_until(lambda: not open_files(path))
    assert not Path(f"{path}-wal").exists(), "everything is in the file itself"
    copy = shutil.copy(path, path.with_suffix(".copy"))
    async with SQLiteSession("a", copy) as copied:
        assert texts(await copied.get_items()) == ["a"]


@in_event_loop
async def test_a_session_that_is_dropped_unclosed_lets_go_of_the_file(path: Path) -> None:
    session = SQLiteSession("a", path)
    await session.add_items([message("a")])
    del session
    gc.collect()
    assert wait_until(lambda: not open_files(path))


def test_an_unclosed_session_does_not_keep_the_interpreter_from_ending(path: Path) -> None:
    script = (
        "import asyncio, sys; from recollect import SQLiteSession\n"
        "session = SQLiteSession('s', sys.argv[1])\n"
        "asyncio.run(session.add_items([{'role': 'user', 'content': 'kept'}]))\n"
        "print('done')"
    )
    ended = subprocess.run([sys.executable, "-c", script, path], capture_output=True, timeout=20, check=True)
    assert (ended.stdout, ended.stderr) == (b"done\n", b"")
    assert not Path(f"{path}-wal").exists(), "the file was closed in order"


@in_event_loop
async def test_one_failing_write_does_not_harm_those_that_share_its_commit(path: Path) -> None:
    session = SQLiteSession("s", path)
    await session.add_items([message("first")])

    def fail(_: list[object]) -> list[object]:
        raise LookupError("only mine")

    calls = [session.add_items([message(n)]) for n in range(5)]
    calls.insert(2, session.transform_items(fail))  # type: ignore[arg-type]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes].count(LookupError) == 1
    assert outcomes.count(None) == 5
    assert texts(await session.get_items()) == ["first", "0", "1", "2", "3", "4"]
    session.close()


@in_event_loop
async def test_a_write_that_waits_for_a_lock_is_cancelled_at_once_and_never_happens(path: Path) -> None:
    session = SQLiteSession("s", path)
    await session.add_items([message("before")])
    with sqlite3.connect(path) as other:
        other.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(session.add_items([message("cancelled")]), timeout=0.05)
        assert time.monotonic() - started < 30  # the lock is waited for twice as long
        assert texts(await session.get_items()) == ["before"], "readers are not held up"
        other.rollback()
    other.close()
    await session.add_items([message("after")])
    assert texts(await session.get_items()) == ["before", "after"]
    session.close()


@in_event_loop
async def test_a_lock_that_is_never_released_is_a_clear_error(path: Path) -> None:
    session = SQLiteSession("s", path, busy_timeout=0.2)
    await session.add_items([message("before")])
    with sqlite3.connect(path) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseBusyError, match=r"sessions\.db was locked by other writers"):
            await session.add_items([message("refused")])
        other.rollback()
    other.close()
    await session.add_items([message("after")])
    assert texts(await session.get_items()) == ["before", "after"]
    session.close()


@in_event_loop
async def test_waiting_writers_get_the_lock_as_soon_as_it_is_free(path: Path) -> None:
    session = SQLiteSession("s", path)
    await session.add_items([message("before")])
    other = sqlite3.connect(path, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.3, lambda: (other.rollback(), other.close())).start()
    await asyncio.gather(*(session.add_items([message(n)]) for n in range(10)))
    assert texts(await session.get_items()) == ["before", *map(str, range(10))]
    session.close()


def test_an_event_loop_that_is_gone_harms_nobody(path: Path) -> None:
    session = SQLiteSession("s", path)
    loop = asyncio.new_event_loop()
    task = loop.create_task(session.add_items([message("left behind")]))
    loop.run_until_complete(asyncio.sleep(0))
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.close()
    asyncio.run(session.add_items([message("next")]))
    assert texts(asyncio.run(session.get_items()))[-1] == "next"
    session.close()


@in_event_loop
async def test_parent_folders_are_made(tmp_path: Path) -> None:
    async with SQLiteSession("s", tmp_path / "a" / "b" / "c.db") as session:
        await session.add_items([message("a")])
    assert (tmp_path / "a" / "b" / "c.db").exists()


@in_event_loop
async def test_a_long_read_does_not_stop_the_loop_or_change_the_collector(path: Path) -> None:
    """The longest stall is measured in the benchmarks; here, that others run at all meanwhile."""
    async with SQLiteSession("s", path) as session:
        await session.add_items([message(n) for n in range(30_000)])
        ticks = 0
        reading = asyncio.create_task(session.get_items())
        while not reading.done():
            await asyncio.sleep(0)
            ticks += 1
        assert len(await reading) == 30_000
        assert ticks > 3
        assert gc.isenabled()
        assert gc.get_freeze_count() == 0


@in_event_loop
async def test_a_long_read_that_is_cancelled_gives_its_connection_back(path: Path) -> None:
    async with SQLiteSession("s", path) as session:
        await session.add_items([message(n) for n in range(20_000)])
        for _ in range(10):
            reading = [asyncio.create_task(session.get_items()) for _ in range(6)]
            await asyncio.sleep(0.002)
            for task in reading:
                task.cancel()
            await asyncio.gather(*reading, return_exceptions=True)
        assert len(await asyncio.wait_for(session.get_items(), 10)) == 20_000


def test_long_reads_from_many_threads_do_not_wait_for_each_other_forever(path: Path) -> None:
    """More readers than connections, and more waiting than threads: connections must always come back."""
    session = SQLiteSession("s", path)
    asyncio.run(session.add_items([message("x" * 50) for _ in range(5000)]))
    lengths: list[int] = []

    async def read() -> None:
        lengths.extend(len(items) for items in await asyncio.gather(*(session.get_items() for _ in range(3))))

    threads = [threading.Thread(target=lambda: asyncio.run(read()), daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert lengths == [5000] * 24
    session.close()


@pytest.mark.parametrize("seconds", [0, 0.05], ids=["at once", "after a while"])
@in_event_loop
async def test_a_write_in_memory_that_is_cancelled_while_it_waits_never_happens(seconds: float) -> None:
    async with SQLiteSession("s") as session:
        await session.add_items([message("before")])
        with in_use_by_another_thread(session):
            writing = asyncio.create_task(session.add_items([message("cancelled")]))
            await asyncio.sleep(seconds)
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
        assert texts(await session.get_items()) == ["before"]
        await session.add_items([message("after")])
        assert texts(await session.get_items()) == ["before", "after"]


@in_event_loop
async def test_a_write_in_memory_waits_for_its_turn() -> None:
    async with SQLiteSession("s") as session:
        await session.add_items([message("before")])
        with in_use_by_another_thread(session):
            writing = asyncio.create_task(session.add_items([message("after")]))
            await asyncio.sleep(0)
            assert not writing.done()
        await writing
        assert texts(await session.get_items()) == ["before", "after"]


@contextmanager
def in_use_by_another_thread(session: SQLiteSession) -> Iterator[None]:
    """While a transformation goes on in another thread, which holds the one connection there is."""
    begun, may_end = threading.Event(), threading.Event()

    def take_long(items: list[Item]) -> list[Item]:
        begun.set()
        may_end.wait()
        return items

    thread = threading.Thread(target=lambda: asyncio.run(session.transform_items(take_long)))
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        may_end.set()
        thread.join()


@in_event_loop
async def test_whoever_only_reads_does_not_wait_for_a_writer(path: Path) -> None:
    first = SQLiteSession("s", path)
    await first.add_items([message("a")])
    first.close()
    assert wait_until(lambda: not open_files(path))
    other = sqlite3.connect(path)
    other.execute("BEGIN IMMEDIATE")
    async with SQLiteSession("s", path, busy_timeout=0.5) as session:
        assert texts(await session.get_items()) == ["a"]
    other.close()


@in_event_loop
async def test_a_file_that_was_only_read_is_closed_too(path: Path) -> None:
    first = SQLiteSession("s", path)
    await first.add_items([message("a")])
    first.close()
    assert wait_until(lambda: not open_files(path))
    session = SQLiteSession("s", path)
    await session.get_items()
    assert open_files(path)
    session.close()
    assert wait_until(lambda: not open_files(path))


def test_a_writer_that_ends_does_not_block_the_release_of_the_last_session(path: Path) -> None:
    """The registry asks the writer to end while it holds its own lock, which the ending writer needs too."""
    released: list[bool] = []

    def try_retire() -> bool:
        """The registry's, while another thread releases the last session."""
        if released:
            return True
        release = threading.Thread(target=lambda: writer.set_needed(False, linger=True), daemon=True)
        release.start()
        release.join(timeout=10)
        released.append(not release.is_alive())
        return True

    options = EngineOptions()
    writer = Writer(
        str(path), options, lambda _: connect_writer(str(path), options), lambda: None, try_retire, linger=0.0
    )
    writer.set_needed(False, linger=True)
    assert wait_until(lambda: bool(released), seconds=20)
    assert released == [True]
    assert wait_until(lambda: not writer.is_running)
