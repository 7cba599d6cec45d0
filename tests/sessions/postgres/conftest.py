"""Databases and servers for these tests."""

from collections.abc import Iterator

import pytest

from recollect.testing.servers.postgres import PostgresServer

from .database import sql


@pytest.fixture(scope="module")
def own_database(postgres_url: str) -> Iterator[str]:
    """The URL of a database that only this module uses, so that its connections can be counted."""
    sql(postgres_url, "CREATE DATABASE own")
    yield postgres_url.rpartition("/")[0] + "/own"
    sql(postgres_url, "DROP DATABASE own WITH (FORCE)")


@pytest.fixture(scope="package")
def server() -> Iterator[PostgresServer]:
    """A server to be stopped, killed and frozen; every test leaves it running."""
    with PostgresServer() as server:
        yield server
