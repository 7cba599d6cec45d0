"""One run at a time: among tasks, threads and processes, and free again when its holder is gone."""

import asyncio
import logging
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from recollect import (
    InMemorySession,
    MissingAbilityError,
    RunLockTimeoutError,
    SQLiteSession,
    StorageError,
    run_lock,
)
from recollect.testing.contract import in_event_loop, message, texts

KINDS = ["memory", "file"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@asynccontextmanager
async def opened(kind: str, path: Path) -> AsyncIterator[Any]:
    session = InMemorySession("s") if kind == "memory" else SQLiteSession("s", path)
    async with session:
        yield session


async def is_free(session: Any) -> bool:
    try:
        async with run_lock(session, timeout=0):
            return True
    except RunLockTimeoutError:
        return False


# --- one at a time ---


@pytest.mark.parametrize("kind", KINDS)
@in_event_loop
async def test_runs_of_several_tasks_do_not_interleave(path: Path, kind: str) -> None:
    async with opened(kind, path) as session:

        async def run(number: int) -> None:
            async with run_lock(session):
                await session.add_items([message(f"{number} asks")])
                await asyncio.sleep(0.001)
                await session.add_items([message(f"{number} is answered")])

        await asyncio.gather(*(run(number) for number in range(8)))
        said = texts(await session.get_items())
        order = [text.split()[0] for text in said[::2]]
        assert said == [text for number in order for text in (f"{number} asks", f"{number} is answered")]
        assert sorted(order) == [str(number) for number in range(8)], "everybody had a turn"


@in_event_loop
async def test_other_sessions_are_not_held(path: Path) -> None:
    async with SQLiteSession("s", path) as one, SQLiteSession("s2", path) as two, run_lock(one):
        assert await is_free(two)
        assert not await is_free(one)


@in_event_loop
async def test_two_handles_of_one_session_share_the_lock(path: Path) -> None:
    async with SQLiteSession("s", path) as one, SQLiteSession("s", path) as two:
        async with run_lock(one):
            assert not await is_free(two)
        assert await is_free(two)


@in_event_loop
async def test_who_does_not_ask_for_the_lock_is_not_held_up(path: Path) -> None:
    async with SQLiteSession("s", path) as session, run_lock(session):
        await session.add_items([message("a")])
        assert await session.pop_item() == message("a")


@pytest.mark.parametrize("kind", KINDS)
@in_event_loop
async def test_clearing_the_session_does_not_open_the_lock(path: Path, kind: str) -> None:
    async with opened(kind, path) as session, run_lock(session):
        await session.add_items([message("a")])
        await session.clear_session()
        assert not await is_free(session)


def test_threads_take_turns(path: Path) -> None:
    inside: list[int] = []
    overlaps: list[int] = []

    async def run(number: int) -> None:
        async with SQLiteSession("s", path) as session:
            for _ in range(3):
                async with run_lock(session):
                    inside.append(number)
                    await asyncio.sleep(0.002)
                    overlaps.append(len(inside) - 1)
                    inside.remove(number)

    threads = [threading.Thread(target=asyncio.run, args=(run(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert overlaps == [0] * 12


COUNTING_PROCESS = """
import asyncio, sys, time
from pathlib import Path
from recollect import SQLiteSession, run_lock

async def count(path, counter):
    async with SQLiteSession("s", path) as session:
        for _ in range(10):
            async with run_lock(session):
                number = int(counter.read_text())
                time.sleep(0.005)
                counter.write_text(str(number + 1))

asyncio.run(count(sys.argv[1], Path(sys.argv[2])))
"""


def test_processes_take_turns(path: Path) -> None:
    counter = path.with_name("counter")
    counter.write_text("0")
    command = [sys.executable, "-c", COUNTING_PROCESS, str(path), str(counter)]
    workers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for worker in workers:
        _, errors = worker.communicate(timeout=60)
        assert worker.returncode == 0, errors
    assert counter.read_text() == "30", "no count was lost"


# --- waiting ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("timeout", [0, 0.05])
@in_event_loop
async def test_waiting_too_long_is_a_clear_error(path: Path, kind: str, timeout: float) -> None:
    async with opened(kind, path) as session, run_lock(session):
        started = time.monotonic()
        with pytest.raises(RunLockTimeoutError) as error:
            async with run_lock(session, timeout=timeout):
                raise AssertionError("nobody else may come in")
        assert time.monotonic() - started >= timeout
        assert str(error.value) == f"session 's' is still in use by another run after {timeout:g} s"
        assert error.value.session_id == "s"
        assert isinstance(error.value, TimeoutError)


@in_event_loop
async def test_who_waits_comes_in_as_soon_as_it_is_free(path: Path) -> None:
    async with SQLiteSession("s", path) as session:
        async with run_lock(session):
            waiting = asyncio.create_task(is_free_within(session, 5))
            await asyncio.sleep(0.05)
            assert not waiting.done()
        assert await waiting


async def is_free_within(session: Any, seconds: float) -> bool:
    async with run_lock(session, timeout=seconds):
        return True


# --- letting go ---


@pytest.mark.parametrize("kind", KINDS)
@in_event_loop
async def test_an_exception_passes_through_and_frees_the_lock(path: Path, kind: str) -> None:
    async with opened(kind, path) as session:
        with pytest.raises(LookupError, match="of the run"):
            async with run_lock(session):
                raise LookupError("of the run")
        assert await is_free(session)


@pytest.mark.parametrize("kind", KINDS)
@in_event_loop
async def test_a_cancelled_run_frees_the_lock(path: Path, kind: str) -> None:
    async with opened(kind, path) as session:
        inside = asyncio.Event()

        async def run() -> None:
            async with run_lock(session):
                inside.set()
                await asyncio.sleep(60)

        task = asyncio.create_task(run())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await is_free(session)


@in_event_loop
async def test_who_is_cancelled_while_waiting_takes_nothing_away(path: Path) -> None:
    async with SQLiteSession("s", path) as session:
        async with run_lock(session):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(is_free_within(session, 60), 0.05)
            assert not await is_free(session), "it is still held"
        assert await is_free(session)


@in_event_loop
async def test_who_is_cancelled_while_taking_the_lock_does_not_hold_it(path: Path) -> None:
    async with SQLiteSession("s", path) as session:

        async def run() -> None:
            async with run_lock(session):
                await asyncio.sleep(60)

        await session.get_items()
        for number in range(30):
            task = asyncio.create_task(run())
            await asyncio.sleep(number / 20_000)
            task.cancel()
            await asyncio.wait([task])
            assert await is_free(session)


@in_event_loop
async def test_who_is_cancelled_while_letting_go_does_not_keep_it(path: Path) -> None:
    async with SQLiteSession("s", path) as session:
        leaving = asyncio.Event()

        async def run() -> None:
            async with run_lock(session):
                leaving.set()

        for number in range(30):
            leaving.clear()
            task = asyncio.create_task(run())
            await leaving.wait()
            await asyncio.sleep(number / 20_000)
            task.cancel()
            await asyncio.wait([task])
            assert await is_free(session)


LATE_CANCELLATION = """
import asyncio, sys, time
from recollect import SQLiteSession, run_lock

async def run(session):
    async with run_lock(session):
        await asyncio.sleep(60)

async def main():
    async with SQLiteSession("s", sys.argv[1]) as session:
        await session.get_items()
        task = asyncio.create_task(run(session))
        await asyncio.sleep(0)
        time.sleep(0.3)  # the loop stands still while the lock is taken, and is not told yet
        task.cancel()
        await asyncio.wait([task])
        async with run_lock(session, timeout=0):
            print("free", end="")

asyncio.run(main())
"""


def test_a_cancellation_that_comes_with_the_lock_is_not_waited_for_in_vain(path: Path) -> None:
    """In a process of its own, because a call that waits in vain cannot be cancelled."""
    command = [sys.executable, "-c", LATE_CANCELLATION, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.stdout, done.stderr) == ("free", "")


@pytest.mark.parametrize("kind", KINDS)
@in_event_loop
async def test_nothing_is_left_behind(path: Path, kind: str) -> None:
    async with opened(kind, path) as session:
        async with run_lock(session):
            assert len(asyncio.all_tasks()) == 2, "this one, and the one that renews the lease"
        assert len(asyncio.all_tasks()) == 1
    if kind == "file":
        connection = sqlite3.connect(path)
        assert connection.execute("SELECT * FROM recollect_agent_sessions_leases").fetchall() == []
        connection.close()


# --- the lease ---


@pytest.mark.parametrize("kind", KINDS)
@in_event_loop
async def test_a_run_may_last_longer_than_the_lease(path: Path, kind: str) -> None:
    async with opened(kind, path) as session, run_lock(session, lease=6):
        for _ in range(7):
            await asyncio.sleep(1)
            assert not await is_free(session)


HOLDING_PROCESS = """
import asyncio, sys
from recollect import SQLiteSession, run_lock

async def hold(path):
    async with run_lock(SQLiteSession("s", path), lease=1.5):
        print("held", flush=True)
        await asyncio.sleep(60)

asyncio.run(hold(sys.argv[1]))
"""


def test_the_lock_of_a_killed_process_is_free_after_the_lease(path: Path) -> None:
    command = [sys.executable, "-c", HOLDING_PROCESS, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        holder.send_signal(signal.SIGKILL)

    with closing(sqlite3.connect(path)) as connection:
        (lease,) = connection.execute("SELECT * FROM recollect_agent_sessions_leases")
        assert lease, "nobody can know yet that its holder is dead"

    async def wait() -> None:
        async with SQLiteSession("s", path) as session, run_lock(session, timeout=60):
            pass

    asyncio.run(wait())


@in_event_loop
async def test_a_lock_that_was_lost_is_logged_and_its_new_holder_keeps_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session = InMemorySession("s")
    with caplog.at_level(logging.WARNING):
        async with run_lock(session, lease=0.06):
            time.sleep(0.1)  # noqa: ASYNC251 - a loop that stands still cannot renew
            assert await session.take_lease("another", 30)
            await asyncio.sleep(0.05)
    assert caplog.messages == ["run lock lost: its lease expired before it was renewed"]
    assert not await is_free(session)


class FailingOnce(InMemorySession):
    """A session whose second call for a lease fails."""

    calls = 0

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self.called_again = asyncio.Event()

    async def take_lease(self, owner: str, seconds: float) -> bool:
        self.calls += 1
        if self.calls == 2:
            raise StorageError("of the disk, with my-secret-word")
        if self.calls > 2:
            self.called_again.set()
        return await super().take_lease(owner, seconds)


@in_event_loop
async def test_a_renewal_that_failed_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    session = FailingOnce("s")
    with caplog.at_level(logging.WARNING):
        async with run_lock(session, lease=0.06):
            await asyncio.wait_for(session.called_again.wait(), 10)
    assert caplog.messages == ["run lock not renewed (StorageError), retrying"]


# --- what it asks for ---


@pytest.mark.parametrize("lease", [0, -1, -0.5])
@in_event_loop
async def test_a_lease_must_last(lease: float) -> None:
    session = InMemorySession("s")
    with pytest.raises(ValueError, match=f"lease must be more than 0 seconds, not {lease}"):
        async with run_lock(session, lease=lease):
            raise AssertionError("not to be reached")
    assert await is_free(session)


@in_event_loop
async def test_a_session_that_cannot_be_held_is_named() -> None:
    class FourMethods:
        session_id = "s"
        session_settings = None

    expected = r"FourMethods is not Leasable: it has no take_lease\(\), drop_lease\(\)"
    with pytest.raises(MissingAbilityError, match=expected) as error:
        async with run_lock(FourMethods()):  # type: ignore[arg-type]
            raise AssertionError("not to be reached")
    assert error.value.ability == "Leasable"
