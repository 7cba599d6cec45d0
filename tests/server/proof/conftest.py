"""Services for these tests: real processes, one on each kind of database, that all tests of a run share."""

import asyncio
import itertools
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from recollect.migrations import migrate
from recollect.testing.providers import ProviderServer
from recollect.testing.servers.postgres import PostgresServer
from recollect.testing.servers.service import ServiceServer

from ...sessions.postgres.database import sql
from .places import Place, settings_for

_numbers = itertools.count()
_LONGEST_TEST = 600  # seconds: who comes first waits for the services to start, on a machine that may be busy


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of this folder may take longer than others."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_LONGEST_TEST))


@contextmanager
def migrated_database(postgres_url: str) -> Iterator[str]:
    """A database of its own, migrated as an operator does it."""
    name = f"proof_{os.getpid()}_{next(_numbers)}"
    sql(postgres_url, f"CREATE DATABASE {name}")
    url = postgres_url.rpartition("/")[0] + f"/{name}"
    asyncio.run(migrate(url))
    try:
        yield url
    finally:
        sql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def opened(database: str, settings: Mapping[str, Mapping[str, Any]]) -> Iterator[Place]:
    """A service that needs keys from the beginning."""
    place = Place(ServiceServer(database, settings), database)
    place.key()
    with place.server:
        yield place


@pytest.fixture(scope="session")
def place_on_sqlite(
    tmp_path_factory: pytest.TempPathFactory, running_server: ProviderServer
) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("sqlite")
    database = str(folder / "recollect.db")
    with opened(database, settings_for(folder, running_server)) as place:
        yield place


@pytest.fixture(scope="session")
def place_on_postgres(
    tmp_path_factory: pytest.TempPathFactory, running_server: ProviderServer, postgres_url: str
) -> Iterator[Place]:
    settings = settings_for(tmp_path_factory.mktemp("postgres"), running_server)
    with migrated_database(postgres_url) as database, opened(database, settings) as place:
        yield place


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> Place:
    """A service on each kind of database; other tests have left things there."""
    found: Place = request.getfixturevalue(f"place_on_{request.param}")
    return found


@pytest.fixture
def user() -> str:
    """A user whom no other test knows."""
    return f"user-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def tenant() -> str:
    """A tenant whom no other test knows."""
    return f"tenant-{os.getpid()}-{next(_numbers)}"


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A server of our own: what other tests have left open would count against its connections."""
    with PostgresServer() as server:
        yield server.url
