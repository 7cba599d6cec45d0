"""Databases for these tests."""

import asyncio
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..sessions.postgres.database import by, sql
from .databases import Place

_numbers = itertools.count()


@pytest.fixture(scope="session")
def memory_postgres(postgres_url: str) -> Iterator[str]:
    """A database of our own on the server that all share: the tables have fixed names."""
    name = f"memory_{os.getpid()}_{next(_numbers)}"
    sql(postgres_url, f"CREATE DATABASE {name}")
    url = postgres_url.rpartition("/")[0] + f"/{name}"
    asyncio.run(_make_tables(url))
    yield url
    sql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


async def _make_tables(url: str) -> None:
    async with Place(url, create_tables=True).open() as store:
        await store.coverage()


@pytest.fixture
def empty_postgres(memory_postgres: str) -> str:
    """The database without any rows; making the tables again for each test would take longer."""
    sql(memory_postgres, "TRUNCATE memories CASCADE")
    return memory_postgres


def _place(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if kind == "memory":
        return Place(":memory:")
    if kind == "file":
        return Place(str(tmp_path / "memory.db"))
    if kind == "aiosqlite":
        return Place(f"sqlite+aiosqlite:///{tmp_path / 'memory.db'}", create_tables=True)
    return Place(by(kind, request.getfixturevalue("empty_postgres")))


@pytest.fixture(params=["memory", "file", "aiosqlite", "asyncpg", "psycopg"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each kind of database, by each way to it."""
    return _place(request.param, request, tmp_path)


@pytest.fixture(params=["file", "aiosqlite", "asyncpg", "psycopg"])
def lasting_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each kind of database that outlives its store, by each way to it."""
    return _place(request.param, request, tmp_path)


@pytest.fixture(params=["file", "asyncpg"])
def shared_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each kind of database that several processes see."""
    return _place(request.param, request, tmp_path)


@pytest.fixture
def file_place(tmp_path: Path) -> Place:
    """A file: where one kind of database is enough."""
    return Place(str(tmp_path / "memory.db"))
