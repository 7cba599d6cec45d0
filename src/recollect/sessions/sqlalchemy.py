"""Sessions on any async SQLAlchemy engine."""

from typing import Any, Self

from ..event_loops import Lifetime
from ..extras import require_extra

# ruff: noqa: E402 - a missing extra must be named before the imports below fail for lack of it
require_extra("postgres", "sqlalchemy.ext.asyncio", "SQLAlchemySession")

from sqlalchemy.ext.asyncio import AsyncEngine

from ..items import escape_non_ascii
from ..sql.sqlalchemy.connections import connections_on
from ..sql.sqlalchemy.engine import SQLAlchemyEngine
from ..sql.sqlalchemy.registry import SharedEngine, acquire_shared, release_shared
from .protocol import SessionMetadata
from .sql.dialects import queries_for
from .sql.session import SQLSession
from .sql.tables import tables_named


class SQLAlchemySession(SQLSession):
    """A session on a database server, on the tables of the Agents SDK.

    An engine that is passed in is used as it is and never disposed of. Sessions created by `from_url` share
    one engine for each URL; a database in memory is private to its session. Migrations create the tables,
    unless `create_tables` is set. `ensure_ascii` escapes non-ASCII characters in stored items and notes, so
    that a database of any encoding can store them. Without it they take less space.
    """

    _advanced = False

    def __init__(
        self,
        session_id: str,
        *,
        engine: AsyncEngine,
        create_tables: bool = False,
        sessions_table: str = "agent_sessions",
        messages_table: str = "agent_messages",
        session_settings: Any = None,
        ensure_ascii: bool = True,
        metadata: SessionMetadata | None = None,
    ) -> None:
        if not isinstance(engine, AsyncEngine):
            raise TypeError(f"engine must be an AsyncEngine of SQLAlchemy, not {type(engine).__name__}")
        tables = tables_named(sessions_table, messages_table, self._advanced, one_pair=False)
        queries = queries_for(engine.dialect.name, tables)
        connections = connections_on(engine)
        self._ensure_ascii = ensure_ascii
        self._runner = SQLAlchemyEngine(lambda: connections, create_tables)
        super().__init__(session_id, self._runner, queries, session_settings, metadata)
        self._shared: SharedEngine | None = None

    @classmethod
    def from_url(
        cls,
        session_id: str,
        *,
        url: str,
        engine_kwargs: dict[str, Any] | None = None,
        session_settings: Any = None,
        **kwargs: Any,
    ) -> Self:
        """A session at a URL, such as `postgresql+asyncpg://user:password@host/name`.

        `engine_kwargs` go to SQLAlchemy's `create_async_engine`, and `kwargs` to the constructor.
        """
        shared = acquire_shared(url, engine_kwargs or {}, create_tables=False)
        try:
            session = cls(session_id, engine=shared.engine, session_settings=session_settings, **kwargs)
        except BaseException:
            release_shared(shared)
            raise
        session._runner.here = shared.here  # the engine passed above belongs to one event loop
        session._shared = shared
        return session

    @property
    def engine(self) -> AsyncEngine:
        """The engine that was passed in. After `from_url`, the shared engine of the running event loop."""
        self._check_open()
        return self._runner.here().engine if self._shared is None else self._shared.engine

    async def aclose(self) -> None:
        """Release the engine. A shared one is closed with its last session. May be called more than once."""
        disposal = self._release_once()
        if disposal is not None:
            await disposal.aclose()

    async def close(self) -> None:
        """The same as `aclose`."""
        await self.aclose()

    def release(self) -> None:
        """Release the engine without waiting. Its connections are closed soon after its last session."""
        self._release_once()

    def _stored_form(self, encoded: list[str]) -> list[str]:
        if not self._ensure_ascii or self._has_own_texts:  # the text of a subclass may not be JSON
            return encoded
        return [escape_non_ascii(text) for text in encoded]

    def _release_once(self) -> Lifetime | None:
        if self._closed:
            return None
        self._closed = True
        return None if self._shared is None else release_shared(self._shared)

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self._release_once()
