"""Open one session by its URL, and manage the sessions of many users in one store."""

import math
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any, Protocol

from ..service_client import is_service_url
from ..sql.urls import is_in_memory, sqlite_path
from .in_memory import InMemorySession
from .protocol import Session, SessionMetadata, SessionPage
from .settings import check_limit
from .sql.tables import Tables
from .sqlite import SQLiteSession

_NOT_SQL = ("http", "memory", "openai", "redis", "unix")


def open_session(url: str, session_id: str, *, advanced: bool = False, **options: Any) -> Session:
    """Open the session at a URL. `options` are passed to the session class.

    `advanced` opens a session with branches and usage, on SQLite and PostgreSQL.

    | URL | session |
    |---|---|
    | a path, or `sqlite:///path` | `SQLiteSession` |
    | `postgresql://user@host/name`, `sqlite+aiosqlite:///path`, … | `SQLAlchemySession` |
    | `redis://host`, `rediss://host`, `redis+cluster://host` | `RedisSession` |
    | `openai://` | `OpenAIConversationsSession`, whose conversation is `session_id` |
    | `https://host`, `http://host` | `RemoteSession`, in a Recollect service; `key=` is its API key |
    | `memory://` | `InMemorySession` |
    """
    path = sqlite_path(url)
    if path is not None:
        return _open_file(session_id, path, advanced, options)
    scheme = url.split("://", 1)[0]
    if advanced and scheme.startswith(_NOT_SQL):
        raise ValueError(f"advanced sessions need SQLite or PostgreSQL, not {scheme}://")
    if is_service_url(url):
        from .remote import RemoteSession

        return RemoteSession(session_id, url, **options)
    if scheme == "memory":
        return InMemorySession(session_id, **options)
    if scheme == "openai":
        from .conversations import OpenAIConversationsSession

        return OpenAIConversationsSession(conversation_id=session_id, **options)
    if scheme.startswith("redis") or scheme == "unix":
        from .redis import RedisSession

        return RedisSession.from_url(session_id, url=url, **options)
    return _open_server(session_id, url, advanced, options)


def _open_file(session_id: str, path: str, advanced: bool, options: dict[str, Any]) -> Session:
    if not advanced:
        return SQLiteSession(session_id, path, **options)
    from .advanced.sqlite import AdvancedSQLiteSession

    return AdvancedSQLiteSession(session_id=session_id, db_path=path, **options)


def _open_server(session_id: str, url: str, advanced: bool, options: dict[str, Any]) -> Session:
    if advanced:
        from .advanced.sqlalchemy import AdvancedSQLAlchemySession

        return AdvancedSQLAlchemySession.from_url(session_id, url=url, **options)
    from .sqlalchemy import SQLAlchemySession

    return SQLAlchemySession.from_url(session_id, url=url, **options)


class SessionIds:
    """Creates session ids of the form `user_type`. No two pairs of user and type share an id.

    `a_b_c` may be user `a` with type `b_c`, or user `a_b` with type `c`. Without declared types it is the
    latter, and underscores of a type are escaped. A declared type keeps its underscores: an id that ends with
    several declared types belongs to the longest, and every other pair with that id is marked by `%%`.
    """

    def __init__(self, types: Collection[str] = ()) -> None:
        if isinstance(types, str) or not all(isinstance(each, str) and each for each in types):
            raise ValueError("session_types must be a collection of non-empty strings")
        if any("%" in each for each in types):
            raise ValueError("session_types must not contain '%'")
        self._types = sorted(types, key=len, reverse=True)

    def id_of(self, user_id: str, session_type: str) -> str:
        """Return the id of a user and session type."""
        _check(user_id, session_type)
        seed_form, escaped = f"{user_id}_{session_type}", f"{user_id}_{_escaped(session_type)}"
        if self._type_in(seed_form) == session_type:
            return seed_form
        return escaped if self._type_in(escaped) is None else f"{user_id}_%%{_escaped(session_type)}"

    def forms_of(self, user_id: str, session_type: str) -> list[str]:
        """Return the id of a pair, then its ids under other declared types or in other software."""
        own = self.id_of(user_id, session_type)
        escaped = _escaped(session_type)
        # With a percent sign, the plain form could be the escaped form of another type of the same user.
        plain = [] if "%" in session_type else [f"{user_id}_{session_type}"]
        others = [f"{user_id}_{escaped}", *plain, f"{user_id}_%%{escaped}"]
        return list(dict.fromkeys([own, *others]))

    def _type_in(self, session_id: str) -> str | None:
        """Return the longest declared type that an id ends with, after a non-empty user."""
        ends = (each for each in self._types if session_id.endswith(f"_{each}"))
        return next((each for each in ends if len(session_id) > len(each) + 1), None)


def _escaped(session_type: str) -> str:
    return session_type.replace("%", "%25").replace("_", "%5F")


def _check(user_id: object, session_type: object) -> None:
    for name, value in (("user_id", user_id), ("session_type", session_type)):
        if not isinstance(value, str) or not value:
            raise ValueError(f"{name} must be a non-empty string, not {value!r}")


class Catalog(Protocol):
    """All sessions of a store."""

    async def list_sessions(
        self, user_id: str | None, agent_id: str | None, limit: int, cursor: str | None
    ) -> SessionPage:
        """Return a page of sessions."""
        ...

    async def delete_idle_sessions(self, seconds: float) -> int:
        """Delete the sessions that were not updated for so many seconds. Return how many."""
        ...

    def close(self) -> None:
        """Release the store."""
        ...


class SessionManager:
    """The sessions of a store, one for each pair of user and session type.

    `url_or_path` is a path or URL as for `open_session`, and `options` are passed to the sessions. Ids have
    the form `user_type`. Underscores of a type are escaped, as in `ada_customer%5Fsupport`, so that no two
    pairs share an id. A type that `session_types` declares is not escaped: `ada_customer_support`.
    """

    def __init__(
        self, url_or_path: str | Path, *, session_types: Collection[str] = (), **options: Any
    ) -> None:
        self._ids = SessionIds(session_types)
        self._url = str(url_or_path)
        self._options = options
        self._open: dict[tuple[str, str], Any] = {}  # by session id and user
        self._lock = threading.Lock()
        self._catalog: Catalog | None = _open_catalog(self._url, options)

    def get_session(self, user_id: str, session_type: str = "default") -> Any:
        """Return the session of a user and type. The same handle is returned until it is closed."""
        return self._get(self._ids.id_of(user_id, session_type), user_id)

    async def find_session(self, user_id: str, session_type: str = "default") -> Any:
        """As `get_session`, but also find a session that was stored before `session_types` changed.

        An id that belongs to another user is never used.
        """
        forms = self._ids.forms_of(user_id, session_type)
        owners = {session_id: await self._owner_of(session_id) for session_id in forms}
        stored = (session_id for session_id in forms if owners[session_id] == user_id)
        free = (session_id for session_id in forms if owners[session_id] is None)
        # The last form is free or belongs to this user: no other pair can have it.
        return self._get(next(stored, None) or next(free), user_id)

    async def _owner_of(self, session_id: str) -> str | None:
        """Return the user of a stored session, or `None` if there is no such session."""
        session: Any = open_session(self._url, session_id, **self._options)
        try:
            metadata: SessionMetadata = await session.get_metadata()
        finally:
            session.release()
        return metadata.user_id

    def _get(self, session_id: str, user_id: str) -> Any:
        with self._lock:
            _ = self._store  # raises if the manager is closed
            session = self._open.get((session_id, user_id))
            if session is None or session.closed:
                metadata = SessionMetadata(user_id=user_id)
                session = open_session(self._url, session_id, metadata=metadata, **self._options)
                self._open[session_id, user_id] = session
            return session

    def close_session(self, user_id: str, session_type: str = "default") -> None:
        """Close the handles of a user and type. Stored items stay."""
        with self._lock:
            forms = self._ids.forms_of(user_id, session_type)
            sessions = [self._open.pop((each, user_id), None) for each in forms]
        for session in sessions:
            if session is not None:
                session.release()

    def close_all_sessions(self) -> None:
        """Close every handle that was returned."""
        with self._lock:
            sessions = list(self._open.values())
            self._open.clear()
        for session in sessions:
            session.release()

    async def cleanup_old_sessions(self, days: float = 30) -> int:
        """Delete the sessions that were not updated for so many days. Return how many."""
        if not math.isfinite(days) or days < 0:
            raise ValueError(f"days must be 0 or more, not {days}")
        return await self._store.delete_idle_sessions(days * 86_400)

    async def list_sessions(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> SessionPage:
        """Return a page of sessions, the latest updated first. On Redis the order is undefined.

        `cursor` is the `next_cursor` of the previous page.
        """
        if not check_limit(limit):
            raise ValueError("limit must be at least 1")
        return await self._store.list_sessions(user_id, agent_id, limit, cursor)

    def close(self) -> None:
        """Close all handles and release the store. Idempotent."""
        self.close_all_sessions()
        catalog, self._catalog = self._catalog, None
        if catalog is not None:
            catalog.close()

    @property
    def _store(self) -> Catalog:
        if self._catalog is None:
            raise RuntimeError("the session manager is closed")
        return self._catalog


def _open_catalog(url: str, options: dict[str, Any]) -> Catalog:
    tables = Tables(
        options.get("sessions_table", "agent_sessions"), options.get("messages_table", "agent_messages")
    )
    path = sqlite_path(url)
    if path == "" or is_in_memory(url) or url.startswith(("memory:", "openai:")) or is_service_url(url):
        raise ValueError("a session manager needs a file or a server whose sessions can be listed")
    if path is not None:
        from .sql.catalog import open_file_catalog

        return open_file_catalog(path, tables, options)
    if url.startswith(("redis", "unix:")):
        from .redis import RedisCatalog

        shared = {name: options[name] for name in ("key_prefix", "redis_kwargs") if name in options}
        return RedisCatalog.from_url(url=url, **shared)
    from .sql.catalog import open_server_catalog

    return open_server_catalog(url, tables, options)
