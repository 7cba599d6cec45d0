"""What does not grow with a history: shown by what the databases do, not by how long they take."""

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.sql import Literal

from recollect.sql.scripts import Statement
from recollect.sql.sqlite.connection import run_script

from ..postgres.database import by, new_tables
from .database import FileDatabase, PostgresDatabase, turns

SHORT, LONG = 100, 10_000  # turns of two items
STEP = 10  # instructions of SQLite's machine between two looks
ITEM = json.dumps({"role": "user", "content": "x"})


async def fill(database: Any, length: int) -> Any:
    """A session of so many turns, a branch from its middle, and other sessions before it and after it."""
    for number in range(20):
        await add(database, f"before {number}", 10)
    async with database.open() as session:
        await session.add_items(turns(*range(length)))
        await session.create_branch_from_turn(length // 2, "b")
        await session.switch_to_branch("main")
    for number in range(20):
        await add(database, f"x after {number}", 10)
    return session


async def add(database: Any, session_id: str, length: int) -> None:
    async with database.open(session_id) as session:
        await session.add_items(turns(*range(length)))


def run_alone(sql: str, *parameters: Any) -> Callable[[Any], Any]:
    def script() -> Any:
        return (yield Statement(sql, parameters))

    return lambda _: script()


def pop_on_branch(session: Any) -> Any:
    yield from session._switch("b")
    return (yield from session._pop())


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "which branch is current": lambda s: run_alone(s._branch_queries.current, "s")(s),
    "where the session stands": lambda s: s._place(),
    "the newest fifty": lambda s: run_alone(s._reads.newest, "s", "main", 50)(s),
    "the newest fifty in one piece": lambda s: run_alone(s._reads.joined, "s", "main", 50)(s),
    "fifty from the middle": lambda s: run_alone(s._reads.before, "s", "main", 200, 50)(s),
    "a pop": lambda s: s._pop(),
    "a pop of what two branches show": pop_on_branch,
    "a turn added": lambda s: s._append([ITEM, ITEM]),
    "a switch": lambda s: s._switch("b"),
    "a turn's start": lambda s: run_alone(s._branch_queries.turn_start, "s", "main", 50)(s),
    "the turn after": lambda s: run_alone(s._branch_queries.start_of_later, "s", "main", 50)(s),
}


# --- SQLite ---


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[Path, Any]]:
    """A short history and a long one."""
    folder = tmp_path_factory.mktemp("plans")
    paths = {length: folder / f"{length}.db" for length in (SHORT, LONG)}
    return {length: (path, asyncio.run(fill(FileDatabase(path), length))) for length, path in paths.items()}


def steps_of(path: Path, script: Any) -> int:
    """How many instructions SQLite runs for a script, which is then undone; to within `STEP`."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += STEP
        return 0

    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("BEGIN")
        connection.set_progress_handler(count, STEP)
        run_script(connection, script)
        connection.set_progress_handler(None, 0)
        connection.execute("ROLLBACK")
    return steps


@pytest.mark.parametrize("operation", OPERATIONS)
def test_sqlite_does_as_much_for_a_long_history_as_for_a_short_one(files: Any, operation: str) -> None:
    steps = {
        length: steps_of(path, OPERATIONS[operation](session)) for length, (path, session) in files.items()
    }
    assert steps[LONG] <= steps[SHORT] + 3 * STEP
    assert steps[LONG] < 5000


def test_sqlite_would_be_caught_reading_a_whole_session(files: Any) -> None:
    """The measure measures."""
    counts = [
        steps_of(
            path, run_alone("SELECT count(*) FROM message_structure WHERE session_id = ?1", "s")(session)
        )
        for path, session in files.values()
    ]
    assert counts[1] > 20 * counts[0]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_sqlite_looks_everything_up_by_an_index(files: Any, operation: str) -> None:
    path, session = files[LONG]
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements_of(connection, OPERATIONS[operation](session)):
            plan = [
                row[3]
                for row in connection.execute(f"EXPLAIN QUERY PLAN {statement.sql}", statement.parameters)
            ]
            scans = [line for line in plan if line.startswith("SCAN")]
            assert all(re.match(r"SCAN (\d+ )?(CONSTANT|c$|newest|json_each)", line) for line in scans), plan
            assert not any("TEMP B-TREE" in line for line in plan), plan


def statements_of(connection: sqlite3.Connection, script: Any) -> Iterator[Statement]:
    """The statements of a script, which is run as they are taken, and undone."""
    statement = next(script)
    try:
        while True:
            yield statement
            statement = script.send(connection.execute(statement.sql, statement.parameters).fetchall())
    except StopIteration:
        connection.rollback()


# --- PostgreSQL ---


@pytest.fixture(scope="module")
def long_history(postgres_url: str) -> tuple[str, Any]:
    """A long history in tables of its own, which the server knows the statistics of."""
    database = PostgresDatabase(by("asyncpg", postgres_url), new_tables())

    async def make() -> Any:
        async with database.open(create_tables=True) as session:
            await session.get_items()
        return await fill(database, LONG)

    session = asyncio.run(make())
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("ANALYZE")
    return postgres_url, session


@pytest.mark.parametrize("operation", OPERATIONS)
def test_postgres_looks_at_few_rows_of_a_long_history(long_history: Any, operation: str) -> None:
    """With the plan that it keeps for a statement after it was run some times."""
    url, session = long_history
    with psycopg.connect(url, prepare_threshold=None) as connection:
        for statement in postgres_statements_of(connection, OPERATIONS[operation](session)):
            looked_at = rows_looked_at(connection, statement)
            assert sum(looked_at.values()) <= 160, (statement.sql, looked_at)  # fifty and as many joined


def postgres_statements_of(connection: Any, script: Any) -> Iterator[Statement]:
    statement = next(script)
    try:
        while True:
            yield statement
            prepared, values = as_prepared(connection, statement)
            connection.execute(f"PREPARE run AS {prepared}")
            cursor = connection.execute(f"EXECUTE run{values}")
            rows = cursor.fetchall() if cursor.description else []
            connection.execute("DEALLOCATE run")
            statement = script.send(rows)
    except StopIteration:
        connection.rollback()


def as_prepared(connection: Any, statement: Statement) -> tuple[str, str]:
    values = ", ".join(Literal(value).as_string(connection) for value in statement.parameters)
    return re.sub(r"\?(\d)", r"$\1", statement.sql), f"({values})" if values else ""


def rows_looked_at(connection: Any, statement: Statement) -> dict[str, float]:
    """How many rows each part of the plan has touched in the tables that grow."""
    prepared, values = as_prepared(connection, statement)
    connection.execute("SAVEPOINT before")
    connection.execute(f"PREPARE looked AS {prepared}")
    for _ in range(7):
        connection.execute("SAVEPOINT again")
        connection.execute(f"EXECUTE looked{values}")
        connection.execute("ROLLBACK TO again")
    ((plans,),) = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE looked{values}").fetchall()
    connection.execute("ROLLBACK TO before")
    connection.execute("DEALLOCATE looked")
    found: dict[str, float] = {}
    look_at(plans[0]["Plan"], found)
    return found


def look_at(node: dict[str, Any], found: dict[str, float]) -> None:
    if "Relation Name" in node and "Scan" in node["Node Type"]:
        touched = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        name = f"{node['Node Type']} on {node['Relation Name']} {len(found)}"
        found[name] = touched * node["Actual Loops"]
    for child in node.get("Plans", ()):
        look_at(child, found)
