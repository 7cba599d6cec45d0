"""The limit: the same rows by the drivers themselves, with nothing around them.

`record` is one transaction with a row for the conversation and one for each message. `run` is what a run that
keeps its steps must do at least: take a lease, keep two steps, and end, each a transaction; nothing is looked
up, compared or checked.
"""

import asyncio
import sqlite3
import uuid
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import asyncpg

BARE = "bare driver"

Statement: TypeAlias = tuple[str, Sequence[Any]]
Rows: TypeAlias = Sequence[Any]

TABLES = (
    "CREATE TABLE conversation (id TEXT PRIMARY KEY, agent TEXT, owner TEXT, created_at TEXT, result TEXT)",
    "CREATE TABLE message (conversation TEXT, place INTEGER, role TEXT, content TEXT, created_at TEXT,"
    " PRIMARY KEY (conversation, place))",
    "CREATE TABLE queue (conversation TEXT PRIMARY KEY, available_at INTEGER, lease TEXT)",
    "CREATE INDEX queue_available_at ON queue (available_at)",
    "CREATE TABLE step (conversation TEXT, name TEXT, result TEXT, PRIMARY KEY (conversation, name))",
    "CREATE TABLE entry (id TEXT PRIMARY KEY, owner TEXT, kind TEXT, content TEXT, learned_at TEXT)",
    "CREATE TABLE evidence (entry TEXT, conversation TEXT, place INTEGER, PRIMARY KEY (entry, place))",
    "CREATE TABLE term (owner TEXT, term TEXT, entry TEXT, PRIMARY KEY (owner, term, entry))",
)
_NOW = "2026-11-16T00:00:00.000000"
_CLAIM = (
    "UPDATE queue SET lease = ?1, available_at = 1 WHERE conversation = (SELECT conversation FROM queue"
    " WHERE available_at = 0 LIMIT 1{}) RETURNING conversation"
)
_HOLD = "UPDATE queue SET available_at = 1 WHERE conversation = ?1 AND lease = ?2"
_READ = "SELECT place, role, content FROM message WHERE conversation = ?1 ORDER BY place"
_STEP = "INSERT INTO step VALUES (?1, ?2, ?3)"
_RESULT = '{"text": "One thing is new.", "candidates": [{"content_type": "event", "confidence": 1.0}]}'


class Bare(Protocol):
    """A database by its driver."""

    skip_locked: str

    async def transact(self, *statements: Statement) -> Rows:
        """Run statements in a transaction, and return the rows of the last."""
        ...

    async def close(self) -> None:
        """Let go of it."""
        ...


class BareSQLite:
    """One connection of `sqlite3`, called inline, that flushes the disk at each commit."""

    skip_locked = ""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")

    async def transact(self, *statements: Statement) -> Rows:
        """Run statements in a transaction."""
        self._connection.execute("BEGIN IMMEDIATE")
        for sql, values in statements:
            rows = self._connection.execute(sql, values).fetchall()
        self._connection.execute("COMMIT")
        return rows

    async def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class BarePostgres:
    """Connections of asyncpg, as many as there are workers."""

    skip_locked = " FOR UPDATE SKIP LOCKED"

    def __init__(self, connections: list[Any]) -> None:
        self._all = connections
        self._free: asyncio.Queue[Any] = asyncio.LifoQueue()
        for connection in connections:
            self._free.put_nowait(connection)

    async def transact(self, *statements: Statement) -> Rows:
        """Run statements in a transaction; a single one is a transaction by itself."""
        connection = await self._free.get()
        try:
            if len(statements) > 1:
                await connection.execute("BEGIN")
            for sql, values in statements:
                rows: Rows = await connection.fetch(sql.replace("?", "$"), *values)
            if len(statements) > 1:
                await connection.execute("COMMIT")
            return rows
        finally:
            self._free.put_nowait(connection)

    async def close(self) -> None:
        """Close the connections."""
        for connection in self._all:
            await connection.close()


async def open_bare(url: str, connections: int = 1) -> Bare:
    """An empty database with the tables."""
    bare: Bare
    if url.startswith("postgresql:"):
        bare = BarePostgres([await asyncpg.connect(url) for _ in range(connections)])
    else:
        bare = BareSQLite(url)
    for table in TABLES:
        await bare.transact((table, ()))
    return bare


# --- what is written ---


async def record(bare: Bare, user: str, messages: Sequence[dict[str, str]], *, queued: bool = False) -> None:
    """Store a conversation, and have it done if that is wanted."""
    made = str(uuid.uuid4())
    rows = [(made, place, each["role"], each["content"], _NOW) for place, each in enumerate(messages)]
    statements: list[Statement] = [
        ("INSERT INTO conversation VALUES (?1, ?2, ?3, ?4, NULL)", (made, "agent", user, _NOW)),
        _insert("message", rows),
    ]
    if queued:
        statements.append(("INSERT INTO queue VALUES (?1, 0, NULL)", (made,)))
    await bare.transact(*statements)


async def run_next(bare: Bare, terms: Sequence[str]) -> bool:
    """Do the run that is due; `False` if there is none. Two entries with these terms are learned."""
    lease = str(uuid.uuid4())
    claimed = await bare.transact((_CLAIM.format(bare.skip_locked), (lease,)))
    if not claimed:
        return False
    conversation: str = claimed[0][0]
    messages = await bare.transact((_READ, (conversation,)))
    hold = (_HOLD, (conversation, lease))
    await bare.transact(hold, (_STEP, (conversation, "modification", _RESULT)))
    learned = _learn("event", conversation, messages[0][2], terms)
    await bare.transact(hold, (_STEP, (conversation, "update", _RESULT)), *learned)
    await bare.transact(
        hold,
        (_STEP, (conversation, "mind", _RESULT)),
        *_learn("mind", conversation, messages[2][2], terms),
        ("UPDATE conversation SET result = ?2 WHERE id = ?1", (conversation, 3 * _RESULT)),
        ("DELETE FROM queue WHERE conversation = ?1 AND lease = ?2", (conversation, lease)),
    )
    return True


def _learn(kind: str, conversation: str, content: str, terms: Sequence[str]) -> list[Statement]:
    entry = str(uuid.uuid4())
    return [
        ("INSERT INTO entry VALUES (?1, ?2, ?3, ?4, ?5)", (entry, conversation, kind, content[:60], _NOW)),
        ("INSERT INTO evidence VALUES (?1, ?2, 0)", (entry, conversation)),
        _insert("term", [(conversation, term, entry) for term in terms]),
    ]


def _insert(table: str, rows: Sequence[Sequence[Any]]) -> Statement:
    width = len(rows[0])
    places = (range(1 + row * width, 1 + (row + 1) * width) for row in range(len(rows)))
    values = ", ".join(f"({', '.join(f'?{number}' for number in row)})" for row in places)
    return f"INSERT INTO {table} VALUES {values}", [value for row in rows for value in row]
