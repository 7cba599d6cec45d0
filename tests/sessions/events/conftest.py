"""Databases for these tests."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..postgres.database import by, sql
from ..redis.conftest import prefix
from .databases import Somewhere

__all__ = ["prefix"]

_numbers = itertools.count()


@pytest.fixture(scope="session")
def our_postgres(postgres_url: str) -> Iterator[str]:
    """A database of our own on the server that all share: the tables have fixed names."""
    name = f"events_{os.getpid()}_{next(_numbers)}"
    sql(postgres_url, f"CREATE DATABASE {name}")
    yield postgres_url.rpartition("/")[0] + f"/{name}"
    sql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def empty_postgres(our_postgres: str) -> str:
    """The database without any tables."""
    sql(our_postgres, "DROP SCHEMA public CASCADE")
    sql(our_postgres, "CREATE SCHEMA public")
    return our_postgres


def _place(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Somewhere:
    if kind == "memory":
        return Somewhere(":memory:")
    if kind == "file":
        return Somewhere(str(tmp_path / "events.db"))
    if kind == "aiosqlite":
        return Somewhere(f"sqlite+aiosqlite:///{tmp_path / 'events.db'}", create_tables=True)
    url: str = request.getfixturevalue("empty_postgres")
    return Somewhere(by(kind, url), create_tables=True)


@pytest.fixture(params=["memory", "file", "aiosqlite", "asyncpg", "psycopg"])
def somewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Somewhere:
    """Each kind of database, by each way to it."""
    return _place(request.param, request, tmp_path)


@pytest.fixture(params=["file", "asyncpg"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Somewhere:
    """Each kind of database that several processes see."""
    return _place(request.param, request, tmp_path)
