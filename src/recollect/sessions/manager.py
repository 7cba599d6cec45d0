"""Many users' sessions in one place."""

import math
import threading
from pathlib import Path

from .protocol import SessionMetadata, SessionPage
from .settings import check_limit
from .sql.catalog import SQLCatalog
from .sql.tables import Tables
from .sqlite.connection import EngineOptions
from .sqlite.queries import queries_for
from .sqlite.registry import acquire_engine, release_engine
from .sqlite.session import SQLiteSession

_SQLITE_SCHEME = "sqlite:///"


class SessionManager:
    """The sessions of a SQLite file, one for each pair of user and session type.

    Give it a path, or a URL `sqlite:///path`.
    """

    def __init__(self, url_or_path: str | Path) -> None:
        self._path = _path_of(str(url_or_path))
        self._open: dict[str, SQLiteSession] = {}
        self._lock = threading.Lock()
        self._engine = acquire_engine(self._path, EngineOptions())
        self._catalog = SQLCatalog(self._engine, queries_for(Tables()))

    def get_session(self, user_id: str, session_type: str = "default") -> SQLiteSession:
        """The session of a user and type; the same handle until it is closed."""
        session_id = _session_id(user_id, session_type)
        with self._lock:
            session = self._open.get(session_id)
            if session is None or session.closed:
                session = self._open[session_id] = SQLiteSession(
                    session_id, self._path, metadata=SessionMetadata(user_id=user_id)
                )
            return session

    def close_session(self, user_id: str, session_type: str = "default") -> None:
        """Close the handle of a user and type; what is stored stays."""
        with self._lock:
            session = self._open.pop(_session_id(user_id, session_type), None)
        if session is not None:
            session.close()

    def close_all_sessions(self) -> None:
        """Close every handle that was given out."""
        with self._lock:
            sessions = list(self._open.values())
            self._open.clear()
        for session in sessions:
            session.close()

    async def cleanup_old_sessions(self, days: float = 30) -> int:
        """Delete the sessions that were not updated for so many days; returns how many."""
        if not math.isfinite(days) or days < 0:
            raise ValueError(f"days must be 0 or more, and it is {days}")
        return await self._catalog.delete_idle_sessions(days * 86_400)

    async def list_sessions(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> SessionPage:
        """A page of sessions, the latest used first. `cursor` is the `next_cursor` of the page before."""
        if not check_limit(limit):
            raise ValueError("limit must be at least 1")
        return await self._catalog.list_sessions(user_id, agent_id, limit, cursor)

    def close(self) -> None:
        """Close all handles and let go of the file."""
        self.close_all_sessions()
        release_engine(self._engine)


def _path_of(url_or_path: str) -> str:
    if url_or_path.startswith(_SQLITE_SCHEME):
        url_or_path = url_or_path.removeprefix(_SQLITE_SCHEME)
    if "://" in url_or_path:
        scheme = url_or_path.split("://", 1)[0]
        raise ValueError(f"cannot keep sessions at a {scheme!r} URL: give a path or sqlite:///path")
    if url_or_path in ("", ":memory:"):
        raise ValueError("a session manager needs a file: a database in memory belongs to one session")
    return url_or_path


def _session_id(user_id: str, session_type: str) -> str:
    """`user_type`. Underscores of the type are escaped, so that no two pairs share an id."""
    for name, value in (("user_id", user_id), ("session_type", session_type)):
        if not isinstance(value, str) or not value:
            raise ValueError(f"{name} must be a non-empty string, not {value!r}")
    return f"{user_id}_{session_type.replace('%', '%25').replace('_', '%5F')}"
