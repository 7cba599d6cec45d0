"""Databases for advanced sessions: a file, one in memory, and real PostgreSQL."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..postgres.database import by, new_tables, sql
from .database import Database, FileDatabase, MemoryDatabase, PostgresDatabase, SharedDatabase


@pytest.fixture(scope="session")
def postgres_tables(postgres_url: str) -> dict[str, str]:
    """Tables of our own, made once."""
    tables = new_tables()
    database = PostgresDatabase(by("asyncpg", postgres_url), tables)

    async def make() -> None:
        async with database.open("s", create_tables=True) as session:
            await session.get_items()

    asyncio.run(make())
    return tables


@pytest.fixture
def postgres(postgres_url: str, postgres_tables: dict[str, str]) -> Iterator[PostgresDatabase]:
    yield PostgresDatabase(by("asyncpg", postgres_url), postgres_tables)
    sql(postgres_url, f'DELETE FROM "{postgres_tables["sessions_table"]}"')


@pytest.fixture
def file(tmp_path: Path) -> FileDatabase:
    return FileDatabase(tmp_path / "sessions.db")


@pytest.fixture(params=["file", "memory", "postgres"])
def database(request: pytest.FixtureRequest) -> Database:
    """Each kind of database."""
    if request.param == "memory":
        return MemoryDatabase()
    found: Database = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["file", "postgres"])
def shared_database(request: pytest.FixtureRequest) -> SharedDatabase:
    """Each kind of database that several sessions and processes see."""
    found: SharedDatabase = request.getfixturevalue(request.param)
    return found
