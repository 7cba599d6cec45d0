"""One function, a URL for each backend."""

from typing import Any

from .in_memory import InMemorySession
from .protocol import Session
from .sqlite.session import SQLiteSession

_SQLITE = "sqlite:///"


def sqlite_path(url: str) -> str | None:
    """The path in the URL of a SQLite file, which may be a bare path; `None` if it is the URL of another."""
    if url.startswith(_SQLITE):
        return url.removeprefix(_SQLITE)
    return None if "://" in url else url


def open_session(url: str, session_id: str, **options: Any) -> Session:
    """A session at a URL; `options` are those of the class that serves it.

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
        return SQLiteSession(session_id, path, **options)
    scheme = url.split("://", 1)[0]
    if scheme == "memory":
        return InMemorySession(session_id, **options)
    if scheme == "openai":
        from .conversations import OpenAIConversationsSession

        return OpenAIConversationsSession(conversation_id=session_id, **options)
    if scheme.startswith("redis") or scheme == "unix":
        from .redis import RedisSession

        return RedisSession.from_url(session_id, url=url, **options)
    from .sqlalchemy import SQLAlchemySession

    return SQLAlchemySession.from_url(session_id, url=url, **options)
