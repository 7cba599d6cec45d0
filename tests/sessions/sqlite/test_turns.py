"""The queue of the processes that write to one file. Each `Turns` has its own locks, as a process has."""

import asyncio
import errno
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from recollect import SQLiteSession
from recollect.sql.sqlite import turns
from recollect.sql.sqlite.connection import connect
from recollect.sql.sqlite.registry import close_all
from recollect.sql.sqlite.turns import Turns
from recollect.testing.contract import in_event_loop, message, texts

from .test_processes import in_child, open_files, wait_until

LONG = 60.0  # longer than any test may take: whoever waits that long is stuck

HOLDER = """
import sys
from recollect.sql.sqlite.turns import Turns
holder = Turns(sys.argv[1])
holder.join()
print(holder.try_enter(), flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE", LONG)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def join(path: Path) -> Iterator[Callable[[], Turns]]:
    """Makes one more that has joined the queue of the file."""
    Path(f"{path}-wal").touch()
    joined: list[Turns] = []

    def join_one() -> Turns:
        joined.append(Turns(str(path)))
        joined[-1].join()
        return joined[-1]

    yield join_one
    for each in joined:
        each.leave()


@pytest.fixture
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the turn until it is killed."""
    Path(f"{path}-wal").touch()
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        yield process
        process.kill()


def _inode(path: Path) -> int:
    return os.stat(f"{path}-wal").st_ino


def _waiting(path: Path, inode: int | None = None) -> int:
    """How many wait in the queue, as the kernel tells; `inode` if the log is no longer there."""
    log = f":{inode or _inode(path)} "
    return sum("->" in line and log in line for line in Path("/proc/locks").read_text().splitlines())


def take_turn(path: Path) -> Turns:
    """Join the queue of a file, and have its turn until it is left."""
    mine = Turns(str(path))
    mine.join()
    assert mine.try_enter()
    return mine


def _never() -> None:
    raise AssertionError("nobody waits for that long")


def _wait_in_thread(each: Turns, then: Callable[[], None]) -> threading.Thread:
    def wait() -> None:
        assert each.wait(LONG, _never)
        then()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def _threads() -> int:
    return sum(thread.name == "recollect-turns" for thread in threading.enumerate())


# --- the order ---


def test_one_at_a_time_has_the_turn(join: Callable[[], Turns]) -> None:
    first, second = join(), join()
    assert first.try_enter()
    assert first.try_enter(), "it still has it"
    assert not second.try_enter()
    first.end()
    assert second.try_enter()
    assert not first.try_enter()


def test_turns_go_in_the_order_of_asking(path: Path, join: Callable[[], Turns]) -> None:
    first, *others = [join() for _ in range(5)]
    order: list[int] = []

    def use_turn(number: int) -> None:
        order.append(number)
        others[number].end()

    assert first.try_enter()
    threads = []
    for number, other in enumerate(others):
        threads.append(_wait_in_thread(other, partial(use_turn, number)))
        assert wait_until(lambda: _waiting(path) == len(threads), 30)
    first.end()
    for thread in threads:
        thread.join(30)
    assert order == [0, 1, 2, 3]


def test_one_that_asks_again_does_not_pass_those_who_wait(path: Path, join: Callable[[], Turns]) -> None:
    greedy, patient = join(), join()
    for _ in range(20):
        assert greedy.wait(LONG, _never)
        got_it = threading.Event()
        thread = _wait_in_thread(patient, got_it.set)
        assert wait_until(lambda: _waiting(path) == 1, 30)
        greedy.end()
        assert not greedy.try_enter(), "the other is at the front"
        assert got_it.wait(30)
        thread.join()
        patient.end()


def test_one_who_never_joined_does_not_wait(path: Path, join: Callable[[], Turns]) -> None:
    assert join().try_enter()
    stranger = Turns(str(path))
    assert stranger.try_enter()
    assert stranger.wait(LONG, _never)
    stranger.end()


@in_event_loop
async def test_the_first_write_of_a_session_waits_for_its_turn(path: Path) -> None:
    """With other options, a session has an engine of its own, as in another process."""
    async with SQLiteSession("s", path) as session, SQLiteSession("s", path, busy_timeout=LONG + 1) as other:
        await session.add_items([message("before")])
        mine = take_turn(path)
        writing = asyncio.create_task(other.add_items([message("first")]))
        assert await asyncio.to_thread(wait_until, lambda: _waiting(path) == 1, 30)
        assert texts(await session.get_items()) == ["before"]
        mine.leave()
        await writing
        assert texts(await session.get_items()) == ["before", "first"]


# --- holders that die, or stop ---


def test_the_kernel_ends_the_turn_of_a_process_that_is_killed(
    holder: subprocess.Popen[str], join: Callable[[], Turns]
) -> None:
    mine = join()
    assert not mine.try_enter()
    thread = _wait_in_thread(mine, lambda: None)
    holder.kill()
    thread.join(30)
    assert not thread.is_alive()
    assert mine.try_enter()


def test_a_process_that_is_stopped_in_its_turn_delays_the_others_once(
    holder: subprocess.Popen[str], join: Callable[[], Turns]
) -> None:
    holder.send_signal(signal.SIGSTOP)
    mine, late, results = join(), threading.Event(), []
    thread = threading.Thread(target=lambda: results.append(mine.wait(0.01, late.set)), daemon=True)
    thread.start()
    assert late.wait(30)
    assert not mine.try_enter()
    for _ in range(3):
        assert mine.wait(LONG, _never), "it does not wait for it again"
    assert thread.is_alive(), "the kernel does not let it go"
    holder.kill()
    thread.join(30)
    assert results == [False], "another thread continues its work"
    assert wait_until(mine.try_enter, 30), "the queue works again"


def test_a_wait_that_is_shorter_than_the_one_before_is_late_in_time(
    holder: subprocess.Popen[str], join: Callable[[], Turns]
) -> None:
    """The thread that looks after waits has seen a long one, and sleeps."""
    mine, late = join(), threading.Event()
    first = _wait_in_thread(mine, mine.end)
    assert wait_until(lambda: _threads() == 1, 30)
    holder.kill()
    first.join(30)
    other = join()
    assert wait_until(other.try_enter, 30)
    second = threading.Thread(target=mine.wait, args=(0.01, late.set), daemon=True)
    second.start()
    assert late.wait(30)
    other.end()
    second.join(30)


def test_a_session_writes_though_the_turn_never_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def write() -> list[str]:
        async with SQLiteSession("s", path) as session:
            await session.add_items([message("before")])
            other = take_turn(path)
            monkeypatch.setattr(turns, "PATIENCE", 0.01)
            await session.add_items([message("late")])
            monkeypatch.setattr(turns, "PATIENCE", LONG)  # it does not wait for that one again
            for number in range(3):
                await session.add_items([message(number)])
            assert _waiting(path) == 1, "a thread waits in the kernel, and another one writes"
            other.leave()
            assert await asyncio.to_thread(wait_until, lambda: not _waiting(path), 30)
            await session.add_items([message("after")])
            return texts(await session.get_items())

    assert asyncio.run(write()) == ["before", "late", "0", "1", "2", "after"]


def test_a_session_is_closed_though_the_turn_never_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Turns(str(path))

    async def write_and_close() -> None:
        async with SQLiteSession("s", path) as session:
            await session.add_items([message("before")])
            other.join()
            assert other.try_enter()
            monkeypatch.setattr(turns, "PATIENCE", 0.01)
            await session.add_items([message("late")])
            logs.append(_inode(path))

    logs: list[int] = []
    asyncio.run(write_and_close())
    assert wait_until(lambda: not _threads(), 30)
    assert _waiting(path, logs[0]) == 1, "a thread still waits in the kernel"
    other.leave()
    assert wait_until(lambda: not open_files(path), 30)


def test_the_end_of_a_program_does_not_wait_for_the_turn(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Turns(str(path))
    monkeypatch.setattr(turns, "PATIENCE", 0.1)

    async def write() -> None:
        session = SQLiteSession("s", path, busy_timeout=math.inf)
        await session.add_items([message("before")])
        await session.add_items([message("late")])
        other.join()
        assert other.try_enter()
        tasks.append(asyncio.create_task(session.add_items([message("cancelled")])))
        assert await asyncio.to_thread(wait_until, lambda: _waiting(path) == 1, 30)

    tasks: list[asyncio.Task[None]] = []
    asyncio.run(write())
    log = _inode(path)
    close_all()
    assert _waiting(path, log) == 1, "a thread still waits in the kernel"
    other.leave()
    assert wait_until(lambda: not open_files(path), 30)


def _open_logs(path: Path) -> int:
    return open_files(path).count(f"{path}-wal")


# --- handles, threads, forks ---


@in_event_loop
async def test_a_session_leaves_nothing_behind(path: Path) -> None:
    async with SQLiteSession("s", path) as session:
        await session.add_items([message("a")])
        assert _open_logs(path) == 3, "SQLite's, one with the locks of the queue, and one of the guard"
    assert wait_until(lambda: not open_files(path)), "they are closed with the file"
    assert wait_until(lambda: not _threads())
    assert not Path(f"{path}-wal").exists()


def test_one_that_leaves_ends_its_turn_and_its_wait(path: Path, join: Callable[[], Turns]) -> None:
    first, second, third = join(), join(), join()
    assert first.try_enter()
    gone = threading.Event()
    thread = threading.Thread(target=second.wait, args=(LONG, gone.set), daemon=True)
    thread.start()
    assert wait_until(lambda: _waiting(path) == 1, 30)
    second.leave()
    assert gone.wait(30), "its work goes on elsewhere"
    first.leave()
    thread.join(30)
    assert wait_until(third.try_enter, 30)
    third.leave()
    assert wait_until(lambda: not _threads() and not open_files(path))


def test_a_forked_child_does_not_end_the_turn_of_its_parent(join: Callable[[], Turns], path: Path) -> None:
    mine, other = join(), join()
    assert mine.try_enter()

    def child() -> None:
        mine.forget()
        other.forget()
        assert not open_files(path)

    assert in_child(child) == 0
    assert not other.try_enter(), "the parent still has it"
    mine.end()
    assert other.try_enter()


def test_a_session_that_has_queued_goes_on_in_parent_and_child(path: Path) -> None:
    session = SQLiteSession("s", path)

    async def meet() -> None:
        await session.add_items([message("before")])
        await session.add_items([message("late")])

    def child() -> None:
        asyncio.run(session.add_items([message("child")]))

    asyncio.run(meet())
    assert in_child(child) == 0
    asyncio.run(session.add_items([message("parent")]))
    assert texts(asyncio.run(session.get_items())) == ["before", "late", "child", "parent"]
    session.close()


def test_a_turn_that_comes_after_the_place_was_left_does_not_stay_with_a_forked_child(
    path: Path, join: Callable[[], Turns]
) -> None:
    first, second, third = join(), join(), join()
    assert first.try_enter()
    thread = threading.Thread(target=second.wait, args=(LONG, lambda: None), daemon=True)
    thread.start()
    assert wait_until(lambda: _waiting(path) == 1, 30)
    assert second._place is not None
    of_child = os.dup(second._place._file)  # a child shares the open file, until it has closed its copy
    second.leave()

    def child() -> None:
        os.close(of_child)
        for each in (first, second, third):
            each.forget()
        assert not open_files(path)

    assert in_child(child) == 0
    first.end()
    thread.join(30)
    assert third.try_enter(), "nobody has the turn, though the file is still open"
    os.close(of_child)


# --- threads that cannot be started ---


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Lets no more threads of a name start, as if there were too many."""
    refused: list[str] = []
    start = threading.Thread.start

    def start_or_fail(thread: threading.Thread) -> None:
        if thread.name in refused:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_or_fail)
    return refused.append


def test_without_a_thread_that_looks_after_waits_a_session_does_not_wait(
    path: Path, refuse: Callable[[str], None]
) -> None:
    async def write() -> list[str]:
        async with SQLiteSession("s", path) as session:
            await session.add_items([message("before")])
            other = take_turn(path)
            refuse("recollect-turns")
            await session.add_items([message("late")])
            other.leave()
            await session.add_items([message("after")])
            return texts(await session.get_items())

    assert asyncio.run(write()) == ["before", "late", "after"]


def test_without_a_thread_that_takes_over_a_session_goes_on_waiting(
    path: Path, monkeypatch: pytest.MonkeyPatch, refuse: Callable[[str], None]
) -> None:
    async def write() -> list[str]:
        async with SQLiteSession("s", path) as session:
            await session.add_items([message("before")])
            other = take_turn(path)
            monkeypatch.setattr(turns, "PATIENCE", 0.01)
            refuse("recollect-writer")
            writing = asyncio.create_task(session.add_items([message("late")]))
            await asyncio.sleep(0.2)
            assert not writing.done(), "the turn never came"
            other.leave()
            await writing
            return texts(await session.get_items())

    assert asyncio.run(write()) == ["before", "late"]


# --- where there is no queue ---


@pytest.mark.parametrize("error", [errno.ENOLCK, errno.EINVAL, errno.EOPNOTSUPP])
def test_a_file_system_without_such_locks(path: Path, monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    tries = []
    lock = turns.fcntl.fcntl

    def fail(file: int, *arguments: Any) -> Any:
        if os.readlink(f"/proc/self/fd/{file}") != f"{path}-wal":  # that of a session of an earlier test
            return lock(file, *arguments)
        tries.append(error)
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(turns.fcntl, "fcntl", fail)
    asyncio.run(_meet_and_write(path))
    assert not _threads()
    assert len(tries) == 1, "it does not ask for locks again and again"


def test_a_system_without_such_locks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_LOCK", None)
    asyncio.run(_meet_and_write(path))


async def _meet_and_write(path: Path) -> None:
    async with SQLiteSession("s", path) as session:
        await session.add_items([message("before")])
        with closing(connect(str(path))) as foreign:
            foreign.execute("BEGIN IMMEDIATE")
            writing = [asyncio.create_task(session.add_items([message(number)])) for number in range(3)]
            await asyncio.sleep(0.05)
            foreign.execute("ROLLBACK")
            await asyncio.gather(*writing)
        assert texts(await session.get_items()) == ["before", "0", "1", "2"]


@pytest.mark.parametrize("log", ["missing", "a link"])
def test_a_log_that_cannot_be_opened(path: Path, log: str) -> None:
    """A link would lead to a file that somebody else has chosen."""
    if log == "a link":
        path.with_name("elsewhere").touch()
        Path(f"{path}-wal").symlink_to(path.with_name("elsewhere"))
    mine = Turns(str(path))
    mine.join()
    assert mine.try_enter()
    assert not open_files(path.with_name("elsewhere"))
