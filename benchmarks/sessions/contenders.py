"""Who is compared on files of SQLite: ours, the SDK's sessions, and the driver itself."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from ..shared.stores import OpenStore, Session, Setting, Store, closed_afterwards
from . import raw
from .histories import Workspace

OURS = "recollect"
SDK = "SDK SQLiteSession"
SDK_ASYNC = "SDK AsyncSQLiteSession"
RAW_FULL = "raw FULL"
RAW_NORMAL = "raw NORMAL"
RAW_OWN = "raw FULL, own connection"

BASELINES = (RAW_FULL, SDK)
READERS = (OURS, SDK, SDK_ASYNC, RAW_FULL)
WRITERS = (*READERS, RAW_NORMAL)


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

    async def close(self) -> None:
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

    async def close(self) -> None:
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

    async def close(self) -> None:
        """Nothing is left."""


def open_as(contender: str, path: Path) -> Store:
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


def opened(contender: str, path: Path) -> AbstractAsyncContextManager[Store]:
    """A file, closed afterwards."""
    return closed_afterwards(open_as(contender, path))


def on_files(workspace: Workspace) -> Setting:
    """Files of a workspace: a copy for each contender."""

    def open_store(contender: str, histories: Mapping[str, int]) -> AbstractAsyncContextManager[Store]:
        return opened(contender, workspace.copy_of(histories))

    @asynccontextmanager
    async def setting() -> AsyncIterator[OpenStore]:
        yield open_store

    return setting
