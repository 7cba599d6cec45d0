"""Services for these tests, in this process, on a file and on a real PostgreSQL that was migrated."""

import asyncio
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.migrations import migrate

from ...sessions.postgres.database import sql

_numbers = itertools.count()


@pytest.fixture(scope="session")
def migrated_template(postgres_url: str) -> Iterator[str]:
    """The name of a database that was migrated, and that nobody uses."""
    name = f"operations_{os.getpid()}"
    sql(postgres_url, f"CREATE DATABASE {name}")
    asyncio.run(migrate(postgres_url.rpartition("/")[0] + f"/{name}"))
    yield name
    sql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def migrated_url(postgres_url: str, migrated_template: str) -> Iterator[str]:
    """A database that was migrated, and has no rows."""
    name = f"{migrated_template}_{next(_numbers)}"
    sql(postgres_url, f"CREATE DATABASE {name} TEMPLATE {migrated_template}")
    yield postgres_url.rpartition("/")[0] + f"/{name}"
    sql(postgres_url, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture(params=["file", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Each kind of database that a service can be on."""
    if request.param == "file":
        return str(tmp_path / "recollect.db")
    found: str = request.getfixturevalue("migrated_url")
    return found
