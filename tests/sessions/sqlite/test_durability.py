"""A write is visible and acknowledged only when it is durable, also after a crash or a failed flush."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

import pytest

from recollect import SQLiteSession
from recollect.sql.sqlite import log_guard, log_locks
from recollect.testing.contract import in_event_loop, message, texts
from tests.faults.power import Disk

from .test_processes import open_files, wait_until

_PROCESS = """
import asyncio, sys
from recollect import SQLiteSession, StorageError

async def main():
    session = SQLiteSession("s", sys.argv[1])
    for line in sys.stdin:
        command, text = line.split()
        try:
            if command == "add":
                await session.add_items([{"role": "user", "content": text}])
                print("added", text, flush=True)
            else:
                items = await session.get_items()
                print("read", *(item["content"] for item in items), flush=True)
        except StorageError as error:
            print(type(error).__name__, flush=True)

asyncio.run(main())
"""


class Process:
    """A process with a session on the disk, which does one thing at a time."""

    def __init__(self, disk: Disk, path: Path) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-c", _PROCESS, str(path)],
            env=os.environ | disk.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send(self, command: str, text: str = "-") -> None:
        assert self._child.stdin
        self._child.stdin.write(f"{command} {text}\n")
        self._child.stdin.flush()

    def answer(self) -> str:
        assert self._child.stdout
        return self._child.stdout.readline().strip()

    def do(self, command: str, text: str = "-") -> str:
        self.send(command, text)
        return self.answer()

    def kill(self) -> None:
        self._child.send_signal(signal.SIGKILL)
        self._child.communicate()


Start: TypeAlias = Callable[[], Process]


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    folder = tmp_path / "disk"
    folder.mkdir()
    return Disk(folder)


@pytest.fixture
def path(disk: Disk) -> Path:
    return disk.folder / "sessions.db"


@pytest.fixture
def start(disk: Disk, path: Path) -> Iterator[Start]:
    started: list[Process] = []

    def start_one() -> Process:
        started.append(Process(disk, path))
        return started[-1]

    yield start_one
    disk.flushes("store")
    for process in started:
        process.kill()


def items_after_power_cut(disk: Disk, folder: Path) -> list[str]:
    disk.cut_power(folder)

    async def read() -> list[str]:
        async with SQLiteSession("s", folder / "sessions.db") as session:
            return texts(await session.get_items())

    return asyncio.run(read())


def test_nobody_reads_a_write_before_it_is_durable(disk: Disk, start: Start) -> None:
    writer, reader = start(), start()
    assert writer.do("add", "durable") == "added durable"
    assert reader.do("read") == "read durable"
    disk.flushes("hold")
    writer.send("add", "late")
    while not disk.is_holding():
        assert reader.do("read") == "read durable"
    assert reader.do("read") == "read durable", "it is in the log, and not on the disk"
    disk.flushes("store")
    assert writer.answer() == "added late"
    assert reader.do("read") == "read durable late"


def test_acknowledged_writes_survive_power_cut(disk: Disk, tmp_path: Path, start: Start) -> None:
    writer = start()
    for number in range(5):
        assert writer.do("add", str(number)) == f"added {number}"
        assert items_after_power_cut(disk, tmp_path / str(number))[-1] == str(number)


def test_failed_flush_is_repaired_by_the_next_process(disk: Disk, tmp_path: Path, start: Start) -> None:
    """The kernel has forgotten that the pages of the failed commit are not stored; a flush succeeds."""
    first = start()
    assert first.do("add", "before") == "added before"
    disk.flushes("fail")
    assert first.do("add", "unsure") == "ConnectionLostError"
    first.kill()
    disk.flushes("store")
    second = start()
    for text in ("a", "b", "c"):
        assert second.do("add", text) == f"added {text}"
    seen = second.do("read").split()[1:]
    second.kill()
    assert items_after_power_cut(disk, tmp_path / "cut") == seen
    assert seen[-3:] == ["a", "b", "c"]


def test_process_that_only_reads_makes_the_log_durable_first(
    disk: Disk, tmp_path: Path, start: Start
) -> None:
    first = start()
    assert first.do("add", "before") == "added before"
    disk.flushes("hold")
    first.send("add", "unflushed")
    assert wait_until(disk.is_holding)
    first.kill()
    disk.flushes("store")
    assert items_after_power_cut(disk, tmp_path / "before") == ["before"]
    reader = start()
    assert reader.do("read") == "read before unflushed"
    assert items_after_power_cut(disk, tmp_path / "after") == ["before", "unflushed"]


def test_log_is_not_written_again_while_a_process_vouches_for_it(
    path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = count_rewrites(monkeypatch)
    first = start()
    assert first.do("add", "a") == "added a"
    asyncio.run(add(path, "b"))
    assert not written
    assert wait_until(lambda: not open_files(path))
    first.kill()
    asyncio.run(add(path, "c"))
    assert len(written) == 1


def count_rewrites(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The descriptors of the logs that this process writes again from now on."""
    written: list[int] = []
    write_again = log_guard._write_again

    def count(file: int) -> None:
        written.append(file)
        write_again(file)

    monkeypatch.setattr(log_guard, "_write_again", count)
    return written


async def add(path: Path, text: str) -> None:
    async with SQLiteSession("s", path) as session:
        await session.add_items([message(text)])


@in_event_loop
async def test_reader_neither_waits_for_a_foreign_writer_nor_overwrites_its_log(
    path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = start()
    assert first.do("add", "a") == "added a"
    first.kill()
    rewrites = count_rewrites(monkeypatch)
    with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
        foreign.execute("BEGIN IMMEDIATE")
        async with SQLiteSession("s", path) as session:
            assert texts(await session.get_items()) == ["a"]
            assert rewrites == [], "the writer may be adding to the log"
            foreign.execute("ROLLBACK")
            await session.add_items([message("b")])
            assert len(rewrites) == 1
            assert texts(await session.get_items()) == ["a", "b"]


@pytest.mark.parametrize("missing", ["on the file system", "on the system"])
def test_without_such_locks_each_process_writes_the_log_again(
    path: Path, start: Start, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    first = start()
    assert first.do("add", "a") == "added a"
    written = count_rewrites(monkeypatch)
    if missing == "on the system":
        for name in ("_LOCK", "_LOCK_AND_WAIT", "_FIND"):
            monkeypatch.setattr(log_locks, name, None)
    else:
        monkeypatch.setattr(log_locks, "_control", refuse)
    asyncio.run(add(path, "b"))
    assert written
    assert first.do("read") == "read a b"


def refuse(*_: object) -> bytes:
    raise OSError(95, os.strerror(95))
