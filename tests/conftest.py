"""Real servers, started once for a test run on free loopback ports, or named by the environment."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.testing.providers import ProviderServer
from recollect.testing.servers.postgres import PostgresServer
from recollect.testing.servers.redis import RedisServer

TESTS = Path(__file__).parent
# `make proof` runs these, and `make test` leaves them out: long campaigns, and the service as a whole.
PROOF_FOLDERS = ("faults", "server/proof")
# The second driver of a database runs the same logic as the first one: `make proof` tries it.
PROOF_DRIVERS = frozenset({"aiosqlite", "psycopg"})


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that belong to `make proof` because of their folder or their driver."""
    for item in items:
        if _is_in_proof_folder(item) or _has_proof_driver(item):
            item.add_marker(pytest.mark.proof)


def _is_in_proof_folder(item: pytest.Item) -> bool:
    return any((TESTS / folder) in item.path.parents for folder in PROOF_FOLDERS)


def _has_proof_driver(item: pytest.Item) -> bool:
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    drivers = [*parameters.values(), getattr(getattr(item, "cls", None), "driver", None)]
    return any(isinstance(driver, str) and driver in PROOF_DRIVERS for driver in drivers)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL with pgvector: `RECOLLECT_TEST_POSTGRES_URL`, or one of our own."""
    given = os.environ.get("RECOLLECT_TEST_POSTGRES_URL")
    if given:
        yield given
        return
    with PostgresServer() as server:
        yield server.url


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A Redis server: `RECOLLECT_TEST_REDIS_URL`, or one of our own."""
    given = os.environ.get("RECOLLECT_TEST_REDIS_URL")
    if given:
        yield given
        return
    with RedisServer() as server:
        yield server.url


@pytest.fixture(scope="session")
def running_server() -> Iterator[ProviderServer]:
    """A provider of models, of our own."""
    with ProviderServer() as server:
        yield server


@pytest.fixture
def server(running_server: ProviderServer) -> ProviderServer:
    """A provider that has forgotten all tests before."""
    running_server.reset()
    return running_server
