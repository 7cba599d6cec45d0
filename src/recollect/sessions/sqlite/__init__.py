"""Sessions in SQLite: a handle per session, one engine per file."""

from .session import AsyncSQLiteSession, SQLiteSession

__all__ = ["AsyncSQLiteSession", "SQLiteSession"]
