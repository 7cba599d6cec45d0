"""Databases for these tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .places import KINDS, Place, database_on, place_of


@pytest.fixture(scope="session")
def service_postgres(postgres_url: str) -> Iterator[str]:
    """A database of our own, with the tables."""
    with database_on(postgres_url) as url:
        yield url


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each kind of database, by each way to it."""
    return place_of(request.param, request, tmp_path)


@pytest.fixture(params=["file", "asyncpg"])
def shared_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each kind of database that several processes see."""
    return place_of(request.param, request, tmp_path)
