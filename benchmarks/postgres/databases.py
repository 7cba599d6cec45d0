"""What is stored: tables for each contender, as that contender makes them, full of the same items."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
from sqlalchemy.ext.asyncio import create_async_engine

from recollect.sessions.sqlalchemy import SQLAlchemySession
from recollect.testing.servers.postgres import PostgresServer

from ..shared.items import make_items
from ..shared.stores import OpenStore, Store, closed_afterwards
from .contenders import OURS_SQLITE, SDK_SQLITE, encode, raw_append, tables_of, use_as

_ITEMS_AT_ONCE = 1000


class Databases:
    """A PostgreSQL that is started when it is first needed, and a directory for files of SQLite."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers = count(1)

    @asynccontextmanager
    async def server(self) -> AsyncIterator[str]:
        """The URL of a server, for the length of a measure; it flushes the disk as it comes."""
        with PostgresServer() as server:
            yield server.url

    @asynccontextmanager
    async def on_one_server(self) -> AsyncIterator[OpenStore]:
        """A server that all contenders use, each with tables of its own."""
        async with self.server() as server:
            yield lambda contender, histories: self.filled(contender, server, histories)

    @asynccontextmanager
    async def filled(self, contender: str, server: str, histories: Mapping[str, int]) -> AsyncIterator[Store]:
        """A contender on tables of its own, with so many items for each session id."""
        number = next(self._numbers)
        tables = {"sessions_table": f"sessions_{number}", "messages_table": f"messages_{number}"}
        url = server
        if contender in (OURS_SQLITE, SDK_SQLITE):
            url = f"sqlite+aiosqlite:///{self._directory}/{number}.db"
        await _make_tables(contender, url, tables)
        await _fill(url, tables, histories)
        async with closed_afterwards(await use_as(contender, url, tables)) as store:
            yield store


async def _make_tables(contender: str, url: str, tables: dict[str, Any]) -> None:
    from agents.extensions.memory import SQLAlchemySession as TheirSession

    kind: Any = TheirSession if contender.startswith("SDK") else SQLAlchemySession
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
    await kind("nobody", engine=engine, create_tables=True, **tables).get_items()
    await engine.dispose()


async def _fill(url: str, tables: dict[str, Any], histories: Mapping[str, int]) -> None:
    if url.startswith("sqlite"):
        for session_id, size in histories.items():
            async with SQLAlchemySession.from_url(session_id, url=url, **tables) as session:
                await session.add_items(make_items(size))
        return
    connection = await asyncpg.connect(url)
    append = raw_append(tables_of(tables))
    for session_id, size in histories.items():
        texts = [encode(item).decode() for item in make_items(size)]
        for start in range(0, size, _ITEMS_AT_ONCE):
            await connection.fetch(append, session_id, texts[start : start + _ITEMS_AT_ONCE])
    for table in tables.values():
        await connection.execute(f'VACUUM ANALYZE "{table}"')  # nobody pays for what the filling left
    await connection.close()
    await asyncio.sleep(0)
