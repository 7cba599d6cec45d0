"""Migrations and `create_tables` lead to the same database, and both to the one that is described."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine

from recollect import AdvancedSQLAlchemySession
from recollect.migrations import VERSION_TABLE, migrate
from recollect.sessions.sql.tables import Tables
from recollect.sessions.sqlalchemy import SQLAlchemySession
from recollect.sessions.sqlalchemy.schema import describe
from recollect.testing.contract import in_event_loop, message, texts


@pytest.fixture
def empty_database(postgres_url: str) -> Iterator[str]:
    """A database of its own on the server."""
    run(postgres_url, "DROP DATABASE IF EXISTS migrated WITH (FORCE)", "CREATE DATABASE migrated")
    yield postgres_url.rsplit("/", 1)[0] + "/migrated"
    run(postgres_url, "DROP DATABASE migrated WITH (FORCE)")


def run(url: str, *statements: str) -> None:
    async def execute() -> None:
        engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
        async with engine.connect() as connection:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            for statement in statements:
                await connection.execute(text(statement))
        await engine.dispose()

    asyncio.run(execute())


async def differences(url: str, tables: Tables | None = None) -> list[Any]:
    """What a database lacks of the described schema, or has beyond it."""

    def compare(connection: Connection) -> list[Any]:
        options = {
            "version_table": VERSION_TABLE,
            "compare_type": True,
            "include_name": lambda name, kind, _: kind != "table" or name in metadata.tables,
        }
        found: list[Any] = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
        return found

    metadata = describe(tables or Tables(advanced=True))
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
    async with engine.connect() as connection:
        found = await connection.run_sync(compare)
    await engine.dispose()
    return found


@in_event_loop
async def test_the_migrations_give_the_described_schema(empty_database: str) -> None:
    assert await differences(empty_database) != [], "the comparison sees what is missing"
    assert await migrate(empty_database) == (None, "0002")
    assert await differences(empty_database) == []
    assert await migrate(empty_database) == ("0002", "0002"), "a second time does nothing"


@in_event_loop
async def test_create_tables_gives_the_described_schema(empty_database: str) -> None:
    async with SQLAlchemySession.from_url("s", url=empty_database, create_tables=True) as session:
        await session.add_items([message("a")])
    assert await differences(empty_database, Tables()) == []
    assert await differences(empty_database) != []
    async with AdvancedSQLAlchemySession.from_url("s", url=empty_database, create_tables=True) as session:
        assert texts(await session.get_items()) == ["a"]
    assert await differences(empty_database) == []


@in_event_loop
async def test_a_database_of_create_tables_can_be_migrated_and_keeps_its_history(empty_database: str) -> None:
    async with SQLAlchemySession.from_url("s", url=empty_database, create_tables=True) as session:
        await session.add_items([message("kept")])
    await migrate(empty_database)
    async with SQLAlchemySession.from_url("s", url=empty_database) as session:
        assert texts(await session.get_items()) == ["kept"]


@in_event_loop
async def test_migrations_at_once_wait_for_each_other(empty_database: str) -> None:
    results = await asyncio.gather(*(migrate(empty_database) for _ in range(4)))
    assert sorted(results, key=str) == [("0002", "0002")] * 3 + [(None, "0002")]


def recollect(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "recollect", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_migrates_and_says_so(empty_database: str) -> None:
    first = recollect("migrate", empty_database)
    assert (first.returncode, first.stdout) == (0, "migrated from nothing to 0002\n")
    second = recollect("migrate", empty_database)
    assert (second.returncode, second.stdout) == (0, "already at 0002\n")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense", "not the URL of a database"),
        ("postgresql://nobody:secret@127.0.0.1:1/x", "no connection can be made"),
        ("sqlite:///x.db", "SQLite files migrate by themselves"),
    ],
)
def test_the_command_says_what_is_wrong_with_a_url(url: str, said: str) -> None:
    ended = recollect("migrate", url)
    assert ended.returncode == 1
    assert said in ended.stderr
    assert "secret" not in ended.stderr
    assert "Traceback" not in ended.stderr
