"""Databases for these tests."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ...sessions.postgres.database import by, sql
from .kit import Somewhere

_numbers = itertools.count()


@pytest.fixture(scope="session")
def our_postgres(postgres_url: str) -> Iterator[str]:
    """A database of our own on the server that all share: the tables have fixed names."""
    name = f"rights_{os.getpid()}_{next(_numbers)}"
    sql(postgres_url, f"CREATE DATABASE {name}")
    yield postgres_url.rpartition("/")[0] + f"/{name}"
    sql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def empty_postgres(our_postgres: str) -> str:
    """The database without any tables."""
    sql(our_postgres, "DROP SCHEMA public CASCADE")
    sql(our_postgres, "CREATE SCHEMA public")
    return our_postgres


@pytest.fixture
def cleared_postgres(our_postgres: str) -> str:
    """The database without any rows: quicker than to make all tables again."""
    rows = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    deletions = "; ".join(f'DELETE FROM "{name}"' for (name,) in sql(our_postgres, rows))
    if deletions:
        sql(our_postgres, deletions)
    return our_postgres


def _place(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Somewhere:
    if kind == "memory":
        return Somewhere(":memory:")
    if kind == "file":
        return Somewhere(str(tmp_path / "rights.db"))
    if kind == "aiosqlite":
        return Somewhere(f"sqlite+aiosqlite:///{tmp_path / 'rights.db'}", create_tables=True)
    url: str = request.getfixturevalue("cleared_postgres")
    return Somewhere(by(kind, url), create_tables=True)


@pytest.fixture(params=["memory", "asyncpg"])
def somewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Somewhere:
    """Each kind of database."""
    return _place(request.param, request, tmp_path)


@pytest.fixture(params=["file", "asyncpg"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Somewhere:
    """Each kind of database that sessions and memory share."""
    return _place(request.param, request, tmp_path)


@pytest.fixture(params=["file", "aiosqlite", "asyncpg", "psycopg"])
def any_way(request: pytest.FixtureRequest, tmp_path: Path) -> Somewhere:
    """Each kind of database that sessions and memory share, by each way to it."""
    return _place(request.param, request, tmp_path)
