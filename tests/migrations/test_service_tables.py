"""The service's own tables: described once, and the same in a file, by migrations and by `create_tables`."""

import asyncio
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from recollect import MissingTablesError
from recollect.migrations import VERSION_TABLE, migrate
from recollect.server.access.audit import AuditLog
from recollect.server.access.keys import KeyStore
from recollect.server.database.schema import TABLES, ServiceSchema
from recollect.server.idempotency import Idempotency
from recollect.testing.contract import in_event_loop

from ..sessions.postgres.database import by, sql

OURS = {table.name for table in TABLES}


@pytest.fixture
def empty_database(postgres_url: str) -> Iterator[str]:
    """A database of its own on the server."""
    name = f"service_tables_{os.getpid()}"
    sql(postgres_url, f"CREATE DATABASE {name}")
    yield postgres_url.rpartition("/")[0] + f"/{name}"
    sql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


def differences(url: str) -> list[Any]:
    """What a database lacks of the described tables, or has beyond them."""
    engine = create_engine(url)
    options = {
        "version_table": VERSION_TABLE,
        "compare_type": True,
        "include_name": lambda name, kind, _: kind != "table" or name in OURS,
    }
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        found = list(compare_metadata(context, ServiceSchema().describe()))
    engine.dispose()
    return found


@in_event_loop
async def test_a_file_has_the_described_tables_and_indexes(tmp_path: Path) -> None:
    path = tmp_path / "service.db"
    async with KeyStore(path) as keys:
        assert not await keys.any()
    assert differences(f"sqlite:///{path}") == []
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP INDEX recollect_api_keys_tenant_created_at")
    assert [change[0] for change in differences(f"sqlite:///{path}")] == ["add_index"]


def test_the_migrations_give_the_described_tables(empty_database: str) -> None:
    url = by("psycopg", empty_database)
    assert len(differences(url)) >= len(OURS), "the comparison sees what is missing"
    asyncio.run(migrate(empty_database))
    assert differences(url) == []


def test_create_tables_gives_the_described_tables(empty_database: str) -> None:
    async def create() -> None:
        async with KeyStore(empty_database, create_tables=True) as keys:
            assert not await keys.any()

    asyncio.run(create())
    assert differences(by("psycopg", empty_database)) == []


@in_event_loop
async def test_the_service_works_on_a_migrated_database_and_asks_for_the_migration(
    empty_database: str,
) -> None:
    async with KeyStore(empty_database) as keys:
        with pytest.raises(MissingTablesError):
            await keys.any()
    await migrate(empty_database)
    async with KeyStore(empty_database) as keys, AuditLog(empty_database) as log:
        key, text = await keys.create("acme", "read")
        assert await keys.verify(text) is not None
        entry = await log.record("acme", key.key_id, "x", None, 200)
        assert await log.list("acme") == [entry]
    async with Idempotency(empty_database) as idempotency:
        claim = await idempotency.claim("acme", "x", "key", b"{}")
        await idempotency.finish(claim, {"id": "1"})
        assert (await idempotency.claim("acme", "x", "key", b"{}")).made == {"id": "1"}


@in_event_loop
async def test_a_database_of_create_tables_can_be_migrated_and_keeps_its_keys(empty_database: str) -> None:
    async with KeyStore(empty_database, create_tables=True) as keys:
        _, text = await keys.create("acme", "read")
    await migrate(empty_database)
    async with KeyStore(empty_database) as keys:
        assert await keys.verify(text) is not None


def test_every_table_has_a_tenant() -> None:
    assert [table.name for table in TABLES if "tenant" not in table.column_names] == []
