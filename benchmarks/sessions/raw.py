"""What the driver itself takes: `sqlite3` called inline with a fast codec, on the SDK's tables.

No session can be faster alone on a machine, and none should be so bare: it blocks the event loop, checks
nothing, and knows one thread only. It is the floor that the others are measured from.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

Synchronous = Literal["FULL", "NORMAL"]

encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

# As the SDK makes them, index included.
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS agent_sessions (
        session_id TEXT PRIMARY KEY,
        created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
        updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP)""",
    """CREATE TABLE IF NOT EXISTS agent_messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL,
        message_data TEXT NOT NULL,
        created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
        FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE)""",
    "CREATE INDEX IF NOT EXISTS idx_agent_messages_session_id ON agent_messages (session_id, id)",
)
_READ_ALL = "SELECT message_data FROM agent_messages WHERE session_id = ? ORDER BY id"
_READ_NEWEST = "SELECT message_data FROM agent_messages WHERE session_id = ? ORDER BY id DESC LIMIT ?"
_TOUCH = (
    "INSERT INTO agent_sessions (session_id) VALUES (?)"
    " ON CONFLICT (session_id) DO UPDATE SET updated_at = CURRENT_TIMESTAMP"
)
_APPEND = "INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)"
_POP = (
    "DELETE FROM agent_messages WHERE id ="
    " (SELECT id FROM agent_messages WHERE session_id = ? ORDER BY id DESC LIMIT 1) RETURNING message_data"
)


def connect(path: Path, synchronous: Synchronous) -> sqlite3.Connection:
    """A connection as one would open it by hand."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={synchronous}")
    return connection


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables if they are not there."""
    for statement in SCHEMA:
        connection.execute(statement)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """One commit for all that happens inside."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.execute("COMMIT")


class RawSession:
    """The four methods of a session, each a statement or two. `async` in name only."""

    def __init__(self, session_id: str, connection: sqlite3.Connection) -> None:
        self.session_id = session_id
        self.connection = connection

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """All items, or the newest, oldest first."""
        return self.read(limit)

    async def add_items(self, items: list[Any]) -> None:
        """Append in a transaction."""
        with transaction(self.connection):
            self.append(items)

    async def pop_item(self) -> Any:
        """Remove the newest and return it."""
        rows = self.connection.execute(_POP, (self.session_id,)).fetchall()
        return _decode(rows[0][0]) if rows else None

    async def clear_session(self) -> None:
        """Remove everything."""
        with transaction(self.connection):
            self.connection.execute("DELETE FROM agent_messages WHERE session_id = ?", (self.session_id,))
            self.connection.execute("DELETE FROM agent_sessions WHERE session_id = ?", (self.session_id,))

    def read(self, limit: int | None) -> list[Any]:
        """The items, row by row."""
        if limit is None:
            return [_decode(data) for (data,) in self.connection.execute(_READ_ALL, (self.session_id,))]
        rows = self.connection.execute(_READ_NEWEST, (self.session_id, limit)).fetchall()
        return [_decode(data) for (data,) in reversed(rows)]

    def append(self, items: list[Any]) -> None:
        """Append within a transaction that somebody else commits."""
        self.connection.execute(_TOUCH, (self.session_id,))
        self.connection.executemany(_APPEND, [(self.session_id, encode(item).decode()) for item in items])
