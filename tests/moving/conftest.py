"""Databases for these tests, each with all tables and without rows."""

import asyncio
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.migrations import migrate

from ..sessions.postgres.database import sql

_numbers = itertools.count()


@pytest.fixture
def new_postgres(postgres_url: str) -> Iterator[str]:
    """A new database on the server that all share."""
    name = f"moving_{os.getpid()}_{next(_numbers)}"
    sql(postgres_url, f"CREATE DATABASE {name}")
    yield postgres_url.rpartition("/")[0] + f"/{name}"
    sql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def migrated_postgres(new_postgres: str) -> str:
    asyncio.run(migrate(new_postgres))
    return new_postgres


@pytest.fixture(params=["file", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "file":
        return str(tmp_path / "target.db")
    found: str = request.getfixturevalue("migrated_postgres")
    return found
