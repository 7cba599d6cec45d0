"""A process that is killed while it creates the tables leaves a database that can be migrated."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from recollect.memory.database.schema import MemorySchema
from recollect.migrations import migrate
from recollect.sql.schema import VERSIONS
from recollect.sql.sqlite.connection import run_script
from recollect.sql.sqlite.migrations import migrate as migrate_file

from ..sessions.postgres.database import sql
from .test_migrations import differences, empty_database

__all__ = ["empty_database"]

# Each program kills itself before a statement: the one with the number that it gets.
_OF_A_FILE = """
import itertools, os, sqlite3, sys
from recollect.memory.database.schema import MemorySchema
from recollect.sql.sqlite.connection import run_script
from recollect.sql.sqlite.migrations import migrate
connection, numbers = sqlite3.connect(sys.argv[1], isolation_level=None), itertools.count()
connection.set_trace_callback(lambda _: next(numbers) == int(sys.argv[2]) and os.kill(os.getpid(), 9))
connection.execute("BEGIN IMMEDIATE")
run_script(connection, migrate(MemorySchema()))
"""
_OF_A_SERVER = """
import asyncio, itertools, os, sys
from sqlalchemy import event
from sqlalchemy.engine import Engine
from recollect.migrations import migrate
numbers = itertools.count()
event.listen(Engine, "before_cursor_execute",
             lambda *_: next(numbers) == int(sys.argv[2]) and os.kill(os.getpid(), 9))
asyncio.run(migrate(sys.argv[1]))
"""


def kill(program: str, place: str, at: int) -> None:
    ended = subprocess.run([sys.executable, "-c", program, place, str(at)], check=False)
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.parametrize("at", [1, 8, 30, 60])
def test_a_file_whose_creation_was_killed_is_whole_and_migrates(tmp_path: Path, at: int) -> None:
    path = tmp_path / "killed.db"
    kill(_OF_A_FILE, str(path), at)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
        run_script(connection, migrate_file(MemorySchema()))
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert names >= MemorySchema().columns().keys()


@pytest.mark.parametrize("at", [2, 60, 150])
def test_a_server_whose_migration_was_killed_is_whole_and_migrates(empty_database: str, at: int) -> None:
    kill(_OF_A_SERVER, empty_database, at)
    tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'"
    assert sql(empty_database, tables) == [(0,)]
    assert asyncio.run(migrate(empty_database)) == (None, VERSIONS[-1])
    assert asyncio.run(differences(empty_database)) == []
