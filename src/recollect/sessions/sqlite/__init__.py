"""Sessions in SQLite: a handle per session, one engine per file."""

from .session import SQLiteSession

__all__ = ["SQLiteSession"]
