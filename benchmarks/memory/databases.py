"""Where it is stored: files of SQLite, or databases of a PostgreSQL that lasts as long as a measure."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Literal, TypeAlias

import asyncpg

from recollect.testing.servers.postgres import PostgresServer

Kind: TypeAlias = Literal["sqlite", "postgres"]
KINDS: tuple[Kind, ...] = ("sqlite", "postgres")
MakeDatabase: TypeAlias = Callable[[], Awaitable[str]]
"""Makes an empty database, and gives its path or its URL without a driver."""


class Databases:
    """Makes databases, for each contender one of its own: the tables have the same names in all."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers = count(1)

    @asynccontextmanager
    async def of_kind(self, kind: Kind) -> AsyncIterator[MakeDatabase]:
        """What makes databases, for the length of a measure; all of them flush the disk as they come."""
        if kind == "sqlite":
            yield self.file
            return
        with PostgresServer() as server:
            yield lambda: self._on(server.url)

    async def file(self) -> str:
        """A file of its own."""
        return str(self._directory / f"{next(self._numbers)}.db")

    async def _on(self, server: str) -> str:
        name = f"memory_{next(self._numbers)}"
        connection = await asyncpg.connect(server)
        await connection.execute(f"CREATE DATABASE {name}")
        await connection.close()
        return f"{server.rpartition('/')[0]}/{name}"
