"""Databases, servers and users for these tests."""

import os
from collections.abc import Iterator

import pytest

from recollect.testing.servers.postgres import PostgresServer

from .database import new_tables, sql


@pytest.fixture(scope="session")
def postgres_url(postgres_url: str) -> Iterator[str]:
    """A database of our own on the server that all share, so that its connections can be counted."""
    name = f"sessions_{os.getpid()}"
    sql(postgres_url, f"CREATE DATABASE {name}")
    yield postgres_url.rpartition("/")[0] + f"/{name}"
    sql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="package")
def server() -> Iterator[PostgresServer]:
    """A server to be stopped, killed and frozen; every test leaves it running."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def tables() -> dict[str, str]:
    """Names of tables that nobody has used."""
    return new_tables()


@pytest.fixture
def role(postgres_url: str, tables: dict[str, str]) -> Iterator[str]:
    """A user who may connect, and nothing else yet."""
    role = f"role_{tables['sessions_table']}"
    sql(postgres_url, f"CREATE ROLE {role} LOGIN")
    yield role
    sql(postgres_url, f"DROP ROLE {role}")
