"""A file that is replaced or deleted while it is in use: nobody goes on beside the old log."""

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from recollect import FileReplacedError, SQLiteSession
from recollect.cli.database_files import copy_file
from recollect.testing.contract import in_event_loop, message, texts

from .test_processes import open_files, wait_until

_CRASHING = """
import asyncio, os, sys
from recollect import SQLiteSession

async def main():
    session = SQLiteSession("s", sys.argv[1])
    for number in range(int(sys.argv[2])):
        await session.add_items([{"role": "user", "content": f"{number} " + "x" * 500}])
    print("ready", flush=True)
    sys.stdin.readline()

asyncio.run(main())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def start_process(path: Path, items: int = 20) -> "subprocess.Popen[str]":
    child = subprocess.Popen(
        [sys.executable, "-c", _CRASHING, str(path), str(items)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout
    assert child.stdout.readline() == "ready\n"
    return child


def kill(child: "subprocess.Popen[str]") -> None:
    child.send_signal(signal.SIGKILL)
    child.communicate()


async def add(path: Path, *contents: str) -> None:
    async with SQLiteSession("s", path) as session:
        await session.add_items([message(each) for each in contents])


def is_whole(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def make_backup(tmp_path: Path) -> Path:
    asyncio.run(add(tmp_path / "source.db", "from the backup"))
    copy_file(tmp_path / "source.db", tmp_path / "backup.db")
    return tmp_path / "backup.db"


@in_event_loop
async def test_deleted_file_is_an_error_and_not_an_empty_database(path: Path) -> None:
    session = SQLiteSession("s", path)
    await session.add_items([message("a")])
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink()
    with pytest.raises(FileReplacedError, match="was deleted while it was in use"):
        await session.get_items()
    with pytest.raises(FileReplacedError, match="was deleted while it was in use"):
        await session.add_items([message("b")])
    later = SQLiteSession("s", path)
    with pytest.raises(FileReplacedError):
        await later.get_items()
    assert not path.exists()
    session.close()
    later.close()
    assert wait_until(lambda: not open_files(path))
    async with SQLiteSession("s", path) as new:
        assert await new.get_items() == [], "all that used the old file have ended"


@in_event_loop
async def test_log_without_its_file_is_not_taken_for_an_empty_database(path: Path) -> None:
    child = await asyncio.to_thread(start_process, path)
    kill(child)
    path.rename(path.with_suffix(".moved"))
    size = os.stat(f"{path}-wal").st_size
    async with SQLiteSession("s", path) as session:
        for call in (session.get_items, lambda: session.add_items([message("a")])):
            with pytest.raises(FileReplacedError, match="is missing or empty, but its log"):
                await call()
    assert not path.exists()
    assert os.stat(f"{path}-wal").st_size == size
    path.with_suffix(".moved").rename(path)
    async with SQLiteSession("s", path) as session:
        assert len(await session.get_items()) == 20, "nothing is lost"


@pytest.mark.parametrize("place", [shutil.copy, shutil.move], ids=["cp", "mv"])
def test_backup_beside_the_log_of_a_dead_process_is_refused(
    path: Path, tmp_path: Path, place: Callable[[Path, Path], object]
) -> None:
    kill(start_process(path))
    backup = make_backup(tmp_path)
    log = Path(f"{path}-wal").read_bytes()
    place(backup, path)

    async def use() -> None:
        async with SQLiteSession("s", path) as session:
            for call in (session.get_items, lambda: session.add_items([message("a")])):
                with pytest.raises(FileReplacedError, match="is the log of the file that was there before"):
                    await call()

    asyncio.run(use())
    assert Path(f"{path}-wal").read_bytes() == log
    Path(f"{path}-wal").unlink()
    Path(f"{path}-shm").unlink()
    assert is_whole(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM agent_messages").fetchall() == [(1,)]


@in_event_loop
async def test_session_notices_replaced_file_and_sets_its_log_aside(path: Path, tmp_path: Path) -> None:
    """The new file is in WAL mode, so its header does not tell that the log is another one's."""
    await add(tmp_path / "other.db", "in the other file")
    assert wait_until(lambda: not open_files(tmp_path / "other.db"))
    session = SQLiteSession("s", path)
    await session.add_items([message(str(number)) for number in range(50)])
    os.replace(tmp_path / "other.db", path)
    for call in (lambda: session.add_items([message("b")]), session.get_items):
        with pytest.raises(FileReplacedError, match="was replaced while it was in use"):
            await call()
    session.close()
    assert wait_until(lambda: not open_files(path))
    assert [each.name for each in tmp_path.glob("sessions.db.replaced-*-wal")]
    async with SQLiteSession("s", path) as new:
        assert texts(await new.get_items()) == ["in the other file"]
        await new.add_items([message("c")])
    assert is_whole(path)


def test_new_process_does_not_use_the_log_of_processes_on_the_old_file(path: Path, tmp_path: Path) -> None:
    asyncio.run(add(tmp_path / "other.db", "in the other file"))
    assert wait_until(lambda: not open_files(tmp_path / "other.db"))
    child = start_process(path)
    os.replace(tmp_path / "other.db", path)

    async def use() -> None:
        async with SQLiteSession("s", path) as session:
            with pytest.raises(FileReplacedError, match="processes still use the file that was there before"):
                await session.add_items([message("a")])

    asyncio.run(use())
    kill(child)
