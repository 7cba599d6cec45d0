"""The write-ahead log stays small, whoever reads meanwhile."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from recollect import SQLiteSession
from recollect.testing.contract import in_event_loop, message
from recollect.testing.servers.redis import wait_until

_LARGEST = 200_000
_BATCH = [message("x" * 1000)] * 50


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("recollect.sql.sqlite.wal.LARGEST", _LARGEST)
    monkeypatch.setattr("recollect.sql.sqlite.wal._LOOK_AFTER", 0.0)
    monkeypatch.setattr("recollect.sql.sqlite.wal._RETRY_AFTER", 0.0)
    return tmp_path / "sessions.db"


def size_of_log(path: Path) -> int:
    return Path(f"{path}-wal").stat().st_size


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Somebody looks at the file as it is now, for as long as they like."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM agent_messages").fetchone()
        yield


@in_event_loop
async def test_a_log_that_a_long_reader_made_grow_is_cut_off_when_they_are_done(path: Path) -> None:
    async with SQLiteSession("s", path) as session:
        await session.add_items(_BATCH)
        with reading(path):
            for _ in range(20):
                await session.add_items(_BATCH)
            assert size_of_log(path) > 4 * _LARGEST, "what the reader sees must stay"
        await session.add_items(_BATCH)
        wait_until(lambda: size_of_log(path) <= _LARGEST, "the log is still large")
        assert len(await session.get_items()) == 22 * len(_BATCH)


@in_event_loop
async def test_a_log_stays_small_while_there_is_always_somebody_who_reads(path: Path) -> None:
    """Each begins before the one before is done, so that there is no moment without one."""
    done = threading.Event()

    def read_without_a_gap() -> None:
        current = reading(path)
        current.__enter__()
        while not done.wait(0.005):
            following = reading(path)
            following.__enter__()
            current.__exit__(None, None, None)
            current = following
        current.__exit__(None, None, None)

    async with SQLiteSession("s", path, durability="normal") as session:
        await session.add_items(_BATCH)
        thread = threading.Thread(target=read_without_a_gap)
        thread.start()
        try:
            sizes = []
            for _ in range(60):
                await session.add_items(_BATCH)
                sizes.append(size_of_log(path))
        finally:
            done.set()
            thread.join()
        assert max(sizes) < 4 * _LARGEST
        assert len(await session.get_items()) == 61 * len(_BATCH)
