"""Who is compared on PostgreSQL: ours, the SDK's sessions, and the driver itself."""

import asyncio
from typing import Any

import asyncpg
import msgspec
from sqlalchemy.ext.asyncio import create_async_engine

from recollect.sessions.sql.dialects import PostgresQueries
from recollect.sessions.sql.tables import Tables
from recollect.sessions.sqlalchemy import SQLAlchemySession

from ..shared.stores import Session, Store

OURS = "recollect"
OURS_GIVEN = "recollect, own engine"
SDK = "SDK, shared engine"
SDK_BY_URL = "SDK, from_url"
RAW = "raw asyncpg"
OURS_SQLITE = "recollect, aiosqlite"
SDK_SQLITE = "SDK, aiosqlite"

CONTENDERS = (OURS, SDK, RAW, OURS_SQLITE, SDK_SQLITE)
ON_POSTGRES = (OURS, SDK, RAW)
BASELINES = (RAW, SDK)

_RAW_CONNECTIONS = 10  # as many as ours has

encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Ours:
    """Sessions of ours, by URL."""

    def __init__(self, url: str, tables: dict[str, Any]) -> None:
        self._url = url
        self._tables = tables

    def session(self, session_id: str) -> Session:
        """A session on the engine that all of the URL share."""
        return SQLAlchemySession.from_url(session_id, url=self._url, **self._tables)

    async def close_session(self, session: Any) -> None:
        """Close it; the last closes the engine."""
        await session.aclose()

    async def close(self) -> None:
        """Nothing: the last session has closed everything."""


class OnEngine:
    """Sessions of a class on an engine that the application holds."""

    def __init__(self, kind: Any, url: str, tables: dict[str, Any]) -> None:
        self._kind = kind
        self._engine = create_async_engine(url)
        self._tables = tables

    def session(self, session_id: str) -> Session:
        """A session on the engine."""
        session: Session = self._kind(session_id, engine=self._engine, **self._tables)
        return session

    async def close_session(self, session: Any) -> None:
        """Nothing: the engine stays."""

    async def close(self) -> None:
        """Close the engine."""
        await self._engine.dispose()


class TheirsByURL:
    """Sessions of the SDK by URL, each with an engine of its own, as in its documentation."""

    def __init__(self, url: str, tables: dict[str, Any]) -> None:
        self._url = url
        self._tables = tables

    def session(self, session_id: str) -> Session:
        """A session with its engine."""
        from agents.extensions.memory import SQLAlchemySession as TheirSession

        session: Session = TheirSession.from_url(session_id, url=self._url, **self._tables)
        return session

    async def close_session(self, session: Any) -> None:
        """Close its engine."""
        await session.engine.dispose()

    async def close(self) -> None:
        """Nothing is left."""


class RawSession:
    """What the driver itself takes: each method one statement, with a fast codec. Nothing is checked."""

    def __init__(self, session_id: str, connections: "asyncio.Queue[Any]", tables: Tables) -> None:
        self.session_id = session_id
        self._connections = connections
        of_session = f'FROM "{tables.messages}" WHERE session_id = $1 ORDER BY id'
        self._read = f"SELECT message_data {of_session}"
        self._read_newest = f"{self._read} DESC LIMIT $2"
        self._append = raw_append(tables)
        self._pop = (
            f'DELETE FROM "{tables.messages}" WHERE session_id = $1 AND id ='
            f" (SELECT id {of_session} DESC LIMIT 1) RETURNING message_data"
        )

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """All items, or the newest, oldest first."""
        if limit is None:
            return [_decode(data) for (data,) in await self._fetch(self._read)]
        rows = await self._fetch(self._read_newest, limit)
        return [_decode(data) for (data,) in reversed(rows)]

    async def add_items(self, items: list[Any]) -> None:
        """The session and its items in one statement, the same that ours sends."""
        await self._fetch(self._append, [encode(item).decode() for item in items])

    async def pop_item(self) -> Any:
        """Remove the newest and return it; two at once may get none."""
        rows = await self._fetch(self._pop)
        return _decode(rows[0][0]) if rows else None

    async def clear_session(self) -> None:
        """Not measured."""
        raise NotImplementedError

    async def _fetch(self, sql: str, *parameters: Any) -> Any:
        connection = await self._connections.get()
        try:
            return await connection.fetch(sql, self.session_id, *parameters)
        finally:
            self._connections.put_nowait(connection)


class Raw:
    """Some connections in a queue, the last recently used first."""

    def __init__(self, connections: list[Any], tables: dict[str, Any]) -> None:
        self._connections: asyncio.Queue[Any] = asyncio.LifoQueue()
        for connection in connections:
            self._connections.put_nowait(connection)
        self._tables = tables_of(tables)

    def session(self, session_id: str) -> Session:
        """A name for rows."""
        return RawSession(session_id, self._connections, self._tables)

    async def close_session(self, session: Any) -> None:
        """Nothing: the connections stay."""

    async def close(self) -> None:
        """Close the connections."""
        while not self._connections.empty():
            await self._connections.get_nowait().close()


def tables_of(tables: dict[str, Any]) -> Tables:
    """The names that follow from those of a session's options."""
    return Tables(tables["sessions_table"], tables["messages_table"])


def raw_append(tables: Tables) -> str:
    """The statement that appends, in asyncpg's words."""
    (statement,) = PostgresQueries(tables).append("", [], None)
    return statement.sql.replace("?", "$")


async def use_as(contender: str, url: str, tables: dict[str, Any]) -> Store:
    """A database as one of the contenders uses it. URLs of PostgreSQL are without a driver."""
    from agents.extensions.memory import SQLAlchemySession as TheirSession

    by_asyncpg = url.replace("postgresql://", "postgresql+asyncpg://")
    match contender:
        case "recollect" | "recollect, aiosqlite":
            return Ours(by_asyncpg, tables)
        case "recollect, own engine":
            return OnEngine(SQLAlchemySession, by_asyncpg, tables)
        case "SDK, shared engine" | "SDK, aiosqlite":
            return OnEngine(TheirSession, by_asyncpg, tables)
        case "SDK, from_url":
            return TheirsByURL(by_asyncpg, tables)
        case "raw asyncpg":
            return Raw([await asyncpg.connect(url) for _ in range(_RAW_CONNECTIONS)], tables)
        case _:
            raise ValueError(f"no contender {contender!r}")
