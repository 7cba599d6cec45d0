"""Several processes on one file: no error, nothing acknowledged lost, whole batches, order kept."""

import asyncio
import gc
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import IO

import pytest

from recollect import Item, SQLiteSession
from recollect.testing.contract import message, texts

pytestmark = pytest.mark.proof

WORKER = Path(__file__).with_name("sqlite_worker.py")
SIZE = 4


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def start_worker(
    path: Path, session_id: str, batches: int, stdout: IO[str] | int = subprocess.PIPE
) -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKER), str(path), session_id, str(batches), str(SIZE)]
    return subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True)


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


async def stored_batches(path: Path, session_id: str) -> list[int]:
    """The numbers of the stored batches, after a check that each is whole."""
    async with SQLiteSession(session_id, path) as session:
        found = texts(await session.get_items())
    batches = [int(text.split("/")[0]) for text in found[::SIZE]]
    assert found == [f"{batch}/{n}" for batch in batches for n in range(SIZE)], "every batch is whole"
    return batches


def test_four_processes_write_one_file_without_an_error(path: Path) -> None:
    """They also race for the first opening, which makes the file and its tables."""
    workers = [start_worker(path, f"session-{n}", 40) for n in range(4)]
    for worker in workers:
        _, errors = worker.communicate(timeout=60)
        assert worker.returncode == 0, errors
    for n in range(4):
        assert asyncio.run(stored_batches(path, f"session-{n}")) == list(range(40))


def test_processes_on_one_session_keep_batches_whole_and_each_in_its_order(path: Path) -> None:
    workers = [start_worker(path, "the session", 25) for _ in range(3)]
    for worker in workers:
        _, errors = worker.communicate(timeout=60)
        assert worker.returncode == 0, errors
    stored = asyncio.run(stored_batches(path, "the session"))
    assert sorted(stored) == sorted(list(range(25)) * 3)


@pytest.mark.parametrize("round_number", range(6))
def test_what_was_acknowledged_survives_kill_9(path: Path, round_number: int) -> None:
    chance = random.Random(round_number)
    said = [path.with_name(f"said-{n}") for n in range(4)]
    workers = []
    for n, file in enumerate(said):
        with file.open("w") as stdout:
            workers.append(start_worker(path, f"session-{n}", 100_000, stdout))
    assert wait_until(lambda: all(file.stat().st_size for file in said), 30)
    time.sleep(chance.uniform(0.01, 0.3))
    for worker in workers:
        worker.send_signal(signal.SIGKILL)
        time.sleep(chance.uniform(0, 0.02))
    for n, worker in enumerate(workers):
        _, errors = worker.communicate()
        assert (worker.returncode, errors) == (-signal.SIGKILL, "")
        acknowledged = [int(line) for line in said[n].read_text().split()]
        stored = asyncio.run(stored_batches(path, f"session-{n}"))
        assert stored[: len(acknowledged)] == acknowledged, "nothing acknowledged is lost"
        assert len(stored) <= len(acknowledged) + 1, "at most one batch was under way"
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def start_talking(path: Path, workers: int, batches: int) -> list[tuple[subprocess.Popen[str], Path]]:
    """Workers with a session each, and the files they write their acknowledged batches to."""
    started = []
    for n in range(workers):
        said = path.with_name(f"said-{n}")
        with said.open("w") as stdout:
            started.append((start_worker(path, f"session-{n}", batches, stdout), said))
    return started


def test_processes_take_turns(path: Path) -> None:
    """While all write, a commit is nearly always followed by that of another process."""
    for worker, _ in start_talking(path, 4, 300):
        _, errors = worker.communicate(timeout=120)
        assert worker.returncode == 0, errors
    with sqlite3.connect(path) as connection:
        ids = connection.execute("SELECT session_id FROM agent_messages ORDER BY id").fetchall()
    order = ids[::SIZE]
    together = order[max(order.index(each) for each in set(order)) :]
    together = together[: -max(together[::-1].index(each) for each in set(order))]
    changes = sum(one != next_one for one, next_one in pairwise(together))
    assert changes > 0.65 * len(together), f"{changes} of {len(together)}"


def test_those_left_go_on_when_others_are_killed_or_stopped_in_the_queue(path: Path) -> None:
    """With a writer beside them that does not know of the queue."""
    chance = random.Random(7)
    talking = start_talking(path, 5, 400)
    assert wait_until(lambda: all(said.stat().st_size for _, said in talking), 60)
    (stopped, _), *killed = talking[:3]
    foreign = sqlite3.connect(path, timeout=60, isolation_level=None)
    foreign.execute("CREATE TABLE foreign_rows (n INTEGER)")
    stopped.send_signal(signal.SIGSTOP)
    for victim, _ in killed:
        foreign.execute("INSERT INTO foreign_rows VALUES (1)")
        time.sleep(chance.uniform(0, 0.05))
        victim.kill()
    time.sleep(0.05)
    stopped.send_signal(signal.SIGCONT)
    for n, (worker, said) in enumerate(talking):
        _, errors = worker.communicate(timeout=120)
        acknowledged = [int(line) for line in said.read_text().split()]
        stored = asyncio.run(stored_batches(path, f"session-{n}"))
        assert stored[: len(acknowledged)] == acknowledged, "nothing acknowledged is lost"
        if n not in (1, 2):
            assert (worker.returncode, errors, stored) == (0, "", list(range(400)))
    assert foreign.execute("SELECT count(*) FROM foreign_rows").fetchone() == (2,)
    assert foreign.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    foreign.close()


# --- fork ---


def in_child(work: Callable[[], None]) -> int:
    """Run work in a forked child, which ends without the parent's clean-up, and return its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_session_goes_on_in_parent_and_child_after_fork(path: Path) -> None:
    session = SQLiteSession("s", path)
    asyncio.run(session.add_items([message("parent before")]))

    def child() -> None:
        asyncio.run(session.add_items([message("child")]))
        assert texts(asyncio.run(session.get_items())) == ["parent before", "child"]

    assert in_child(child) == 0
    asyncio.run(session.add_items([message("parent after")]))
    assert texts(asyncio.run(session.get_items())) == ["parent before", "child", "parent after"]
    session.close()


def test_a_childs_writes_survive_that_its_parent_closes_the_file(path: Path) -> None:
    """A connection inherited over a fork holds no lock of its own: the parent, closing the file as its
    last user, would delete the log that the child goes on writing to.
    """
    session = SQLiteSession("s", path)
    asyncio.run(session.add_items([message("parent")]))
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio.run(session.add_items([message("child 1")]))
            os.read(told, 1)
            asyncio.run(session.add_items([message("child 2")]))
            code = 0
        finally:
            os._exit(code)  # as after kill -9: nothing is closed
    asyncio.run(session.get_items())
    session.close()
    assert wait_until(lambda: not open_files(path)), "the parent lets go of the file"
    other = subprocess.run(
        [sys.executable, str(WORKER), str(path), "other", "1", "1"], capture_output=True, check=True
    )
    assert other.stdout == b"0\n"
    os.write(tell, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    again = SQLiteSession("s", path)
    assert texts(asyncio.run(again.get_items())) == ["parent", "child 1", "child 2"]
    again.close()
    os.close(told)
    os.close(tell)


def test_fork_during_writes_and_long_reads(path: Path) -> None:
    session = SQLiteSession("s", path)

    async def busy() -> None:
        await session.add_items([message(n) for n in range(20_000)])
        reading = [asyncio.create_task(session.get_items()) for _ in range(3)]
        writing = [asyncio.create_task(session.add_items([message(n)])) for n in range(20)]
        for _ in range(4):
            await asyncio.sleep(0.01)
            assert in_child(lambda: None) == 0
        assert [len(items) >= 20_000 for items in await asyncio.gather(*reading)] == [True] * 3
        await asyncio.gather(*writing)
        assert len(await session.get_items()) == 20_020

    asyncio.run(busy())

    def child() -> None:
        assert len(asyncio.run(session.get_items())) == 20_020

    assert in_child(child) == 0
    session.close()


def test_fork_while_a_session_is_garbage_collected(path: Path) -> None:
    """The fork waits for the writer, and the writer's thread happens to collect a dropped session."""
    session = SQLiteSession("s", path)
    inside = threading.Event()

    def change(items: list[Item]) -> list[Item]:
        dropped = SQLiteSession("dropped", path)
        dropped.itself = dropped  # type: ignore[attr-defined]
        del dropped
        inside.set()
        time.sleep(0.3)
        gc.collect()
        return items

    writer = threading.Thread(target=lambda: asyncio.run(session.transform_items(change)), daemon=True)
    writer.start()
    assert inside.wait(60)
    assert in_child(lambda: None) == 0
    writer.join(timeout=10)
    assert not writer.is_alive()
    session.close()


def test_a_child_collects_garbage_and_a_session_in_memory_goes_on_in_it(path: Path) -> None:
    """Whatever long read was under way in the parent when it forked."""
    memory, file = SQLiteSession("m"), SQLiteSession("f", path)

    def child() -> None:
        assert gc.isenabled()
        assert len(asyncio.run(memory.get_items())) == 20_000

    async def fork_while_reading() -> None:
        for session in (memory, file):
            await session.add_items([message("x" * 50)] * 20_000)
        for _ in range(5):
            reading = [asyncio.create_task(session.get_items()) for session in (memory, file)]
            await asyncio.sleep(0.01)
            codes.append(await asyncio.to_thread(in_child, child))
            await asyncio.gather(*reading)

    codes: list[int] = []
    asyncio.run(fork_while_reading())
    assert codes == [0] * 5
    memory.close()
    file.close()


def open_files(path: Path) -> list[str]:
    """The files of the database that this process has open."""
    links = []
    for entry in os.scandir("/proc/self/fd"):
        try:
            links.append(os.readlink(entry.path))
        except FileNotFoundError:
            continue
    return [link for link in links if link.startswith(str(path))]
