"""One function, a URL for each backend."""

from typing import Any

from ..sql.urls import sqlite_path
from .in_memory import InMemorySession
from .protocol import Session
from .sqlite import SQLiteSession

_NOT_SQL = ("memory", "openai", "redis", "unix")


def open_session(url: str, session_id: str, *, advanced: bool = False, **options: Any) -> Session:
    """A session at a URL; `options` are those of the class that serves it.

    `advanced` gives one with branches and usage, on SQLite and PostgreSQL.

    | URL | session |
    |---|---|
    | a path, or `sqlite:///path` | `SQLiteSession` |
    | `postgresql://user@host/name`, `sqlite+aiosqlite:///path`, … | `SQLAlchemySession` |
    | `redis://host`, `rediss://host`, `redis+cluster://host` | `RedisSession` |
    | `openai://` | `OpenAIConversationsSession`, whose conversation is `session_id` |
    | `memory://` | `InMemorySession` |
    """
    path = sqlite_path(url)
    if path is not None:
        return _open_file(session_id, path, advanced, options)
    scheme = url.split("://", 1)[0]
    if advanced and scheme.startswith(_NOT_SQL):
        raise ValueError(f"branches and usage are kept on SQLite and PostgreSQL, not at {scheme}://")
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
