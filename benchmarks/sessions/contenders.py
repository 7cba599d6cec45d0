"""Who is compared, behind one small face: open a file, make sessions on it, close them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from . import raw

OURS = "recollect"
SDK = "SDK SQLiteSession"
SDK_ASYNC = "SDK AsyncSQLiteSession"
RAW_FULL = "raw FULL"
RAW_NORMAL = "raw NORMAL"
RAW_OWN = "raw FULL, own connection"

READERS = (OURS, SDK, SDK_ASYNC, RAW_FULL)
WRITERS = (*READERS, RAW_NORMAL)


class Session(Protocol):
    """What is measured of a session."""

    def get_items(self, limit: int | None = None) -> Awaitable[list[Any]]:
        """All items, or the newest."""
        ...

    def add_items(self, items: list[Any]) -> Awaitable[None]:
        """Append."""
        ...

    def pop_item(self) -> Awaitable[Any]:
        """Remove the newest."""
        ...

    def clear_session(self) -> Awaitable[None]:
        """Remove all."""
        ...


class Database(Protocol):
    """A file as a contender uses it."""

    def session(self, session_id: str) -> Session:
        """Make a session, as an application does for a request."""
        ...

    async def close_session(self, session: Any) -> None:
        """Close one."""
        ...

    def close(self) -> None:
        """Let go of the file after the last."""
        ...


class SessionClass:
    """A class whose sessions open and close the file by themselves: ours, and the SDK's."""

    def __init__(self, make: Callable[[str, Path], Any], path: Path) -> None:
        self._make = make
        self._path = path

    def session(self, session_id: str) -> Session:
        """A session of the class."""
        session: Session = self._make(session_id, self._path)
        return session

    async def close_session(self, session: Any) -> None:
        """Close it the way its class does it."""
        closing = session.close()
        if closing is not None:
            await closing

    def close(self) -> None:
        """Nothing: the last session has closed the file, or will."""


class RawShared:
    """One connection for all sessions."""

    def __init__(self, path: Path, synchronous: raw.Synchronous) -> None:
        self.connection = raw.connect(path, synchronous)
        raw.create_tables(self.connection)

    def session(self, session_id: str) -> raw.RawSession:
        """A name for rows of the shared connection."""
        return raw.RawSession(session_id, self.connection)

    async def close_session(self, session: Any) -> None:
        """Nothing: the connection stays."""

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class RawOwn:
    """A connection for each session: what an application without an engine would do for each request."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def session(self, session_id: str) -> raw.RawSession:
        """Open a connection. The tables are known to be there."""
        return raw.RawSession(session_id, raw.connect(self._path, "FULL"))

    async def close_session(self, session: Any) -> None:
        """Close the connection."""
        session.connection.close()

    def close(self) -> None:
        """Nothing is left."""


def open_as(contender: str, path: Path) -> Database:
    """Open a file as one of the contenders does. The SDK, slow to import, is imported only for its own."""
    match contender:
        case "recollect":
            from recollect.sessions.sqlite import SQLiteSession

            return SessionClass(SQLiteSession, path)
        case "SDK SQLiteSession":
            import agents

            return SessionClass(agents.SQLiteSession, path)
        case "SDK AsyncSQLiteSession":
            from agents.extensions.memory.async_sqlite_session import AsyncSQLiteSession

            return SessionClass(AsyncSQLiteSession, path)
        case "raw FULL":
            return RawShared(path, "FULL")
        case "raw NORMAL":
            return RawShared(path, "NORMAL")
        case "raw FULL, own connection":
            return RawOwn(path)
        case _:
            raise ValueError(f"no contender {contender!r}")


def check_read(contender: str, items: list[Any], expected: int) -> None:
    """Nobody wins by reading less than all."""
    if len(items) != expected:
        raise AssertionError(f"{contender} read {len(items)} items and not {expected}")


@asynccontextmanager
async def opened(contender: str, path: Path) -> AsyncIterator[Database]:
    """A file, closed afterwards."""
    database = open_as(contender, path)
    try:
        yield database
    finally:
        database.close()


@asynccontextmanager
async def live_session(database: Database, session_id: str) -> AsyncIterator[Session]:
    """A session that has been used once, so that what opening costs is not counted; closed afterwards."""
    session = database.session(session_id)
    try:
        await session.get_items(1)
        yield session
    finally:
        await database.close_session(session)
