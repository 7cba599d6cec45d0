"""Imports and copies that are killed at random points, and run again: nothing lost, nothing doubled."""

import math
import multiprocessing
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from recollect.cli.database import find_damage

from ..sessions.postgres.database import sql
from .killed import copy_all, import_lines
from .kit import rows_in, talk, write_lines

pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]

KILLS = 20
TALKS, MESSAGES = 400, 25
# Forked from a server that has imported everything: a start takes no time.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["recollect.moving.importer", "recollect.moving.copying.copy", "sqlalchemy"])


def run(work: Callable[..., None], places: tuple[str, str], kill_after: float = math.inf) -> bool:
    """Run work in a process, and kill it after so many batches; returns whether it ended before."""
    told, theirs = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=work, args=(theirs, *places))
    process.start()
    theirs.close()
    batches = 0
    try:
        while batches < kill_after:
            if told.recv() == "done":
                process.join()
                return True
            batches += 1
    except EOFError as error:
        process.join()
        raise AssertionError(f"it failed by itself, with exit code {process.exitcode}") from error
    finally:
        told.close()
    time.sleep(kill_after % 1 / 50)  # somewhere within a batch
    process.kill()
    process.join()
    return False


def test_an_import_that_is_killed_twenty_times_is_complete(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "a.jsonl", [talk(number, MESSAGES) for number in range(TALKS)])
    target, randomly = tmp_path / "new.db", random.Random(24)
    places = (str(source), str(target))
    kills = sum(not run(import_lines, places, randomly.uniform(0, 45)) for _ in range(KILLS))
    assert kills == KILLS  # there are 50 batches
    assert run(import_lines, places)
    with closing(sqlite3.connect(target)) as connection:
        assert find_damage(connection) == []
    assert rows_in(target, "SELECT count(*) FROM conversations WHERE waiting_from = 0") == [(TALKS,)]
    counted = "SELECT count(*), count(DISTINCT content) FROM conversation_messages"
    assert rows_in(target, counted) == [(TALKS * MESSAGES, TALKS * MESSAGES)]
    assert rows_in(target, "SELECT count(*) FROM message_records") == [(TALKS * MESSAGES,)]
    assert rows_in(target, "SELECT DISTINCT next_index FROM conversations") == [(MESSAGES,)]


def test_a_copy_that_is_killed_is_completed_by_the_next(migrated_postgres: str, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "a.jsonl", [talk(number, MESSAGES) for number in range(TALKS)])
    origin, randomly = tmp_path / "origin.db", random.Random(24)
    assert run(import_lines, (str(source), str(origin)))
    places = (str(origin), migrated_postgres)
    kills = sum(not run(copy_all, places, randomly.uniform(0, 20)) for _ in range(6))
    assert run(copy_all, places)
    assert kills >= 2
    assert sql(migrated_postgres, "SELECT count(*) FROM conversation_messages") == [(TALKS * MESSAGES,)]
