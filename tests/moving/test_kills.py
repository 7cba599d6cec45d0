"""Imports and copies that are killed at random points, and run again: nothing lost, nothing doubled."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from recollect.cli.database import find_damage

from .kit import rows_in, talk, write_lines

pytestmark = pytest.mark.proof

KILLS = 20
TALKS, MESSAGES = 400, 25
IMPORT = """
import asyncio, sys
from recollect.memory.store import MemoryStore
from recollect.moving import importer
from recollect.moving.kinds import ReadOptions, kind_named
importer._ROWS = 200
async def run():
    async with MemoryStore(sys.argv[2], workers=0, embedder=None) as store:
        told = lambda report: print("batch", flush=True)
        work = importer.Importer(store, learn=True, on_progress=told)
        await work.run(kind_named("jsonl").read(sys.argv[1], ReadOptions()))
asyncio.run(run())
"""
COPY = """
import asyncio, sys
from recollect.moving.copying import copy, copy_database
copy._PAGE = 300
asyncio.run(copy_database(sys.argv[1], sys.argv[2], lambda *_: print("page", flush=True)))
"""


def run_and_kill(code: str, arguments: list[str], randomly: random.Random) -> bool:
    """Run a program and kill it after a random number of batches; returns whether it ended before."""
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE)
    assert process.stdout is not None
    for _ in range(randomly.randrange(1, 8)):
        if not process.stdout.readline():
            assert process.wait() == 0
            return True
    time.sleep(randomly.uniform(0, 0.02))  # somewhere within a batch
    process.send_signal(signal.SIGKILL)
    process.wait()
    return False


def test_an_import_that_is_killed_twenty_times_is_complete(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "a.jsonl", [talk(number, MESSAGES) for number in range(TALKS)])
    target, randomly = tmp_path / "new.db", random.Random(24)
    kills = 0
    while kills < KILLS and not run_and_kill(IMPORT, [str(source), str(target)], randomly):
        kills += 1
    subprocess.run(
        [sys.executable, "-c", IMPORT, str(source), str(target)], check=True, stdout=subprocess.DEVNULL
    )
    _check(target)
    assert kills >= 5
    assert rows_in(target, "SELECT count(*) FROM conversations WHERE waiting_from = 0") == [(TALKS,)]


def _check(path: Path) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(path)) as connection:
        assert find_damage(connection) == []
    assert rows_in(path, "SELECT count(*) FROM conversations") == [(TALKS,)]
    counted = "SELECT count(*), count(DISTINCT content) FROM conversation_messages"
    assert rows_in(path, counted) == [(TALKS * MESSAGES, TALKS * MESSAGES)]
    assert rows_in(path, "SELECT count(*) FROM message_records") == [(TALKS * MESSAGES,)]
    assert rows_in(path, "SELECT DISTINCT next_index FROM conversations") == [(MESSAGES,)]


def test_a_copy_that_is_killed_is_completed_by_the_next(migrated_postgres: str, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "a.jsonl", [talk(number, MESSAGES) for number in range(TALKS)])
    origin, randomly = tmp_path / "origin.db", random.Random(24)
    subprocess.run(
        [sys.executable, "-c", IMPORT, str(source), str(origin)], check=True, stdout=subprocess.DEVNULL
    )
    kills = sum(not run_and_kill(COPY, [str(origin), migrated_postgres], randomly) for _ in range(6))
    subprocess.run(
        [sys.executable, "-c", COPY, str(origin), migrated_postgres], check=True, stdout=subprocess.DEVNULL
    )
    from ..sessions.postgres.database import sql

    assert kills >= 3
    assert sql(migrated_postgres, "SELECT count(*) FROM conversation_messages") == [(TALKS * MESSAGES,)]
