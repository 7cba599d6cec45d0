"""Real servers, started once for a test run on free loopback ports, or named by the environment."""

import os
from collections.abc import Iterator

import pytest

from recollect.testing.providers import ProviderServer
from recollect.testing.servers.postgres import PostgresServer
from recollect.testing.servers.redis import RedisServer


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
