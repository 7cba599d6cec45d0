"""Sessions on any async SQLAlchemy engine."""

import weakref
from collections.abc import AsyncGenerator
from typing import Any, Self

from sqlalchemy.ext.asyncio import AsyncEngine

from ..protocol import SessionMetadata
from ..sql.session import SQLSession
from ..sql.tables import tables_named
from .connections import Connections, EngineState
from .engine import SQLAlchemyEngine, queries_for
from .shared import SharedEngine, acquire_shared, release_shared

_states: "weakref.WeakKeyDictionary[Any, EngineState]" = weakref.WeakKeyDictionary()


class SQLAlchemySession(SQLSession):
    """A session on a database server, on the tables of the Agents SDK.

    An engine that is passed in is used as it is and never disposed of. Sessions made by `from_url` share
    one engine for each URL. The tables come from migrations, unless `create_tables` is set.
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
        metadata: SessionMetadata | None = None,
    ) -> None:
        if not isinstance(engine, AsyncEngine):
            raise TypeError(f"engine must be an AsyncEngine of SQLAlchemy, not {type(engine).__name__}")
        tables = tables_named(sessions_table, messages_table, self._advanced, one_pair=False)
        queries = queries_for(engine.dialect.name, tables)
        connections = Connections(engine, _states.setdefault(engine.sync_engine, EngineState()))
        running = SQLAlchemyEngine(lambda: connections, create_tables)
        super().__init__(session_id, running, queries, session_settings, metadata)
        self._shared: SharedEngine | None = None

    @classmethod
    def from_url(
        cls,
        session_id: str,
        *,
        url: str,
        engine_kwargs: dict[str, Any] | None = None,
        create_tables: bool = False,
        sessions_table: str = "agent_sessions",
        messages_table: str = "agent_messages",
        session_settings: Any = None,
        metadata: SessionMetadata | None = None,
    ) -> Self:
        """A session at a URL, such as `postgresql+asyncpg://user:password@host/name`.

        `engine_kwargs` go to SQLAlchemy's `create_async_engine`.
        """
        tables = tables_named(sessions_table, messages_table, cls._advanced, one_pair=False)
        shared = acquire_shared(url, engine_kwargs or {}, create_tables)
        session = cls.__new__(cls)
        try:
            queries = queries_for(shared.url.get_backend_name(), tables)
            SQLSession.__init__(session, session_id, shared, queries, session_settings, metadata)
        except BaseException:
            release_shared(shared)
            raise
        session._shared = shared
        return session

    async def aclose(self) -> None:
        """Let go of the engine; one that was made here is closed with its last session. Twice is harmless."""
        disposal = self._let_go()
        if disposal is not None:
            await disposal.aclose()

    async def close(self) -> None:
        """As `aclose`."""
        await self.aclose()

    def release(self) -> None:
        """Let go of the engine without waiting; its connections are closed soon after its last session."""
        self._let_go()

    def _let_go(self) -> AsyncGenerator[None] | None:
        if self._closed:
            return None
        self._closed = True
        return None if self._shared is None else release_shared(self._shared)

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self._let_go()
