"""Sessions in a SQLite file."""

from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from ..sql.sqlite.connection import EngineOptions
from ..sql.sqlite.registry import acquire_engine, drop_engine, release_engine
from .protocol import SessionMetadata
from .sql.dialects import queries_for
from .sql.session import SQLSession
from .sql.tables import tables_named

_options = lru_cache(maxsize=64)(EngineOptions)


class _FileSession(SQLSession):
    """Base class of sessions in a SQLite file: everything but `close`."""

    _advanced = False

    def __init__(
        self,
        session_id: str,
        db_path: str | Path = ":memory:",
        sessions_table: str = "agent_sessions",
        messages_table: str = "agent_messages",
        session_settings: Any = None,
        *,
        metadata: SessionMetadata | None = None,
        durability: Literal["full", "normal"] = "full",
        busy_timeout: float = 60.0,
        one_pair: bool = True,
    ) -> None:
        self._closed = True  # until the engine is acquired
        self.db_path = db_path
        self.sessions_table = sessions_table
        self.messages_table = messages_table
        tables = tables_named(sessions_table, messages_table, self._advanced, one_pair=one_pair)
        queries = queries_for("sqlite", tables)
        self._file = acquire_engine(str(db_path), _options(durability, busy_timeout))
        try:
            super().__init__(session_id, self._file, queries, session_settings, metadata)
        except BaseException:
            release_engine(self._file)
            raise

    def release(self) -> None:
        """Release the file, which its last session closes soon. May be called more than once."""
        if not self._closed:
            self._closed = True
            release_engine(self._file)

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            drop_engine(self._file)


class SQLiteSession(_FileSession):
    """A session in a SQLite file, on the tables of the Agents SDK.

    The object is a handle: sessions on the same file share one engine, so creating one takes microseconds.
    The file is opened at the first call. `:memory:` is private to the session.

    With `durability="full"` every acknowledged write survives a power cut, with `"normal"` only a crash of
    the process. `metadata` is stored with the first items if the session has none yet.
    """

    def close(self) -> None:
        """Release the file, which its last session closes soon. May be called more than once."""
        self.release()

    async def aclose(self) -> None:
        """The same as `close`."""
        self.close()


class AsyncSQLiteSession(_FileSession):
    """A `SQLiteSession` whose `close` is awaited, in place of the class of that name in the Agents SDK.

    Both classes use the same files and the same engine.
    """

    async def close(self) -> None:
        """Release the file, which its last session closes soon. May be called more than once."""
        self.release()

    async def aclose(self) -> None:
        """The same as `close`."""
        await self.close()
