"""Where the service's own tables live in these tests: a database in memory, a file, and a real PostgreSQL."""

import asyncio
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from recollect.server.access.keys import KeyStore
from recollect.server.database.schema import TABLES
from recollect.sql.database import SQLStore

from ...sessions.postgres.database import by, sql

T = TypeVar("T", bound=SQLStore)
KINDS = ("memory", "file", "aiosqlite", "asyncpg", "psycopg")
_numbers = itertools.count()


@dataclass(frozen=True)
class Place:
    """A place that can be opened again and again; one in memory is another each time."""

    url: str
    create_tables: bool = False

    def open(self, kind: type[T], **options: Any) -> T:
        """A store there."""
        return kind(self.url, create_tables=self.create_tables, **options)


@contextmanager
def database_on(postgres_url: str) -> Iterator[str]:
    """A database of our own on the server that all share: the tables have fixed names."""
    name = f"service_{os.getpid()}_{next(_numbers)}"
    sql(postgres_url, f"CREATE DATABASE {name}")
    url = postgres_url.rpartition("/")[0] + f"/{name}"
    asyncio.run(_make_tables(url))
    yield url
    sql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


async def _make_tables(url: str) -> None:
    async with KeyStore(url, create_tables=True) as keys:
        assert not await keys.any()


def place_of(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty place of a kind."""
    if kind == "memory":
        return Place(":memory:")
    if kind == "file":
        return Place(str(tmp_path / "service.db"))
    if kind == "aiosqlite":
        return Place(f"sqlite+aiosqlite:///{tmp_path / 'service.db'}", create_tables=True)
    url = request.getfixturevalue("service_postgres")
    sql(url, f"TRUNCATE {', '.join(table.name for table in TABLES)}")
    return Place(by(kind, url))
