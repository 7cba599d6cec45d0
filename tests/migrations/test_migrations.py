"""Migrations and `create_tables` lead to the same database, and both to the one that is described."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, text
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.ext.asyncio import create_async_engine

import recollect.migrations
from recollect import AdvancedSQLAlchemySession, MissingTablesError
from recollect.memory.database.access import MemoryDatabase
from recollect.memory.store import MemoryStore
from recollect.migrations import VERSION_TABLE, all_schemas, migrate
from recollect.sessions.events import EventLog
from recollect.sessions.protocol import SessionMetadata
from recollect.sessions.sql.schema import session_schema
from recollect.sessions.sql.tables import Tables
from recollect.sessions.sqlalchemy import SQLAlchemySession
from recollect.sql.schema import Schema
from recollect.sql.sqlalchemy.metadata import Vector
from recollect.strategies.summaries import ConversationSummaryStore
from recollect.testing.contract import in_event_loop, message, texts

from ..sessions.postgres.database import sql

ischema_names["vector"] = Vector  # else reflection, which compares the types of columns, warns

HEAD = ScriptDirectory(str(Path(recollect.migrations.__file__).parent)).get_current_head()
BY_USER = "recollect_agent_sessions_metadata_by_user"
ADVANCED = session_schema(Tables(advanced=True))


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


async def differences(url: str, *schemas: Schema) -> list[Any]:
    """What a database lacks of the described schemas, or has beyond them; of all, if none is given."""

    def compare(connection: Connection) -> list[Any]:
        options = {
            "version_table": VERSION_TABLE,
            "compare_type": True,
            "include_name": lambda name, kind, _: is_compared(name, kind, metadata),
        }
        found: list[Any] = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
        return found

    metadata = MetaData()
    for schema in schemas or all_schemas():
        for table in schema.describe().sorted_tables:
            table.to_metadata(metadata)
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
    async with engine.connect() as connection:
        found = await connection.run_sync(compare)
    await engine.dispose()
    return found


def is_compared(name: str | None, kind: str, metadata: MetaData) -> bool:
    """The described tables with their indexes; vectors and numbers are compared by definition."""
    if kind == "index":
        return "_nearest_" not in str(name) and not str(name).endswith("_numbers")
    return kind != "table" or name in metadata.tables


def definitions(url: str) -> dict[str, str]:
    """What PostgreSQL itself says of the indexes of long-term memory, and of where its vectors lie."""
    tables = (
        "tablename IN ('memory_contents', 'conversation_messages', 'conversations', 'memory_runs',"
        " 'message_records', 'memory_terms')"
    )
    found = sql(url, f"SELECT indexname, indexdef FROM pg_indexes WHERE {tables}")
    storage = "attrelid IN ('memory_contents'::regclass, 'conversation_messages'::regclass)"
    found += sql(
        url,
        "SELECT attrelid::regclass::text, attstorage::text FROM pg_attribute"
        f" WHERE attname = 'content_vector' AND {storage}",
    )
    return dict(found)


@in_event_loop
async def test_migrations_and_create_tables_give_the_same_indexes(
    empty_database: str, postgres_url: str
) -> None:
    await migrate(empty_database)
    migrated = definitions(empty_database)
    sql(postgres_url, "DROP DATABASE migrated WITH (FORCE)")
    sql(postgres_url, "CREATE DATABASE migrated")
    async with MemoryStore(empty_database, create_tables=True, workers=0) as store:
        assert await store.get_memory("agent", "user") is None
    assert definitions(empty_database) == migrated
    assert "recollect_message_records_numbers" in migrated
    assert sorted(name for name in migrated if "_nearest_" in name) == [
        f"recollect_{table}_nearest_{dimension}"
        for table in ("conversation_messages", "memory_contents")
        for dimension in (1536, 384, 512)
    ]


@in_event_loop
async def test_sessions_of_a_user_with_a_long_id_are_kept_and_found(empty_database: str) -> None:
    await migrate(empty_database)
    long = "".join(map(chr, range(0x4E00, 0x4E00 + 4096)))  # a repetition would be made short
    owner = SessionMetadata(long, long)
    async with SQLAlchemySession.from_url("s", url=empty_database, metadata=owner) as session:
        await session.add_items([message("a")])
        assert await session.get_metadata() == owner
    ((definition,),) = sql(empty_database, f"SELECT indexdef FROM pg_indexes WHERE indexname = '{BY_USER}'")
    assert "USING hash (user_id)" in definition


@in_event_loop
async def test_the_migrations_give_the_described_schema(empty_database: str) -> None:
    assert await differences(empty_database) != [], "the comparison sees what is missing"
    assert await migrate(empty_database) == (None, HEAD)
    assert await differences(empty_database) == []
    assert await migrate(empty_database) == (HEAD, HEAD), "a second time does nothing"


@in_event_loop
async def test_create_tables_gives_the_described_schema(empty_database: str) -> None:
    async with SQLAlchemySession.from_url("s", url=empty_database, create_tables=True) as session:
        await session.add_items([message("a")])
    assert await differences(empty_database, session_schema(Tables())) == []
    assert await differences(empty_database, ADVANCED) != []
    async with AdvancedSQLAlchemySession.from_url("s", url=empty_database, create_tables=True) as session:
        assert texts(await session.get_items()) == ["a"]
    assert await differences(empty_database, ADVANCED) == []


@pytest.mark.parametrize("kind", [EventLog, ConversationSummaryStore])
@in_event_loop
async def test_create_tables_of_a_store_gives_the_described_schema(
    empty_database: str, kind: type[EventLog] | type[ConversationSummaryStore]
) -> None:
    assert await differences(empty_database, kind.schema) != []
    async with kind(empty_database, create_tables=True) as store:
        assert await store.delete("nothing") == 0
    assert await differences(empty_database, kind.schema) == []


@in_event_loop
async def test_create_tables_of_long_term_memory_gives_the_described_schema(empty_database: str) -> None:
    assert await differences(empty_database, MemoryDatabase.schema) != []
    async with MemoryStore(empty_database, create_tables=True, workers=0) as store:
        assert await store.get_memory("agent", "user") is None
    assert await differences(empty_database, MemoryDatabase.schema) == []


@in_event_loop
async def test_long_term_memory_works_on_a_migrated_database(empty_database: str) -> None:
    async with MemoryStore(empty_database, workers=0) as store:
        with pytest.raises(MissingTablesError):
            await store.get_memory("agent", "user")
    await migrate(empty_database)
    async with MemoryStore(empty_database, workers=0) as store:
        await store.add_entry("agent", "user", "profile", "The user sails.")
        memory = await store.get_memory("agent", "user")
    assert memory is not None
    assert memory.profile_content == ["The user sails."]


@in_event_loop
async def test_stores_work_on_a_migrated_database_and_keep_what_they_had(empty_database: str) -> None:
    async with EventLog(empty_database, create_tables=True) as log:
        await log.append("c", [message("kept")])
    await migrate(empty_database)
    async with EventLog(empty_database) as log, ConversationSummaryStore(empty_database) as summaries:
        assert [event.text for event in await log.read("c")] == ["kept"]
        assert (await summaries.add("c", "a summary")).version == 1


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
    assert sorted(results, key=str) == [(HEAD, HEAD)] * 3 + [(None, HEAD)]


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "recollect", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_migrates_and_says_so(empty_database: str) -> None:
    first = run_command("migrate", "--url", empty_database)
    assert (first.returncode, first.stdout) == (0, f"migrated from nothing to {HEAD}\n")
    second = run_command("migrate", "--url", empty_database)
    assert (second.returncode, second.stdout) == (0, f"already at {HEAD}\n")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense", "not a database URL"),
        ("postgresql://nobody:secret@127.0.0.1:1/x", "no connection can be made"),
        ("sqlite:///x.db", "SQLite files need no migration command"),
    ],
)
def test_the_command_says_what_is_wrong_with_a_url(url: str, said: str) -> None:
    ended = run_command("migrate", "--url", url)
    assert ended.returncode == 1
    assert said in ended.stderr
    assert "secret" not in ended.stderr
    assert "Traceback" not in ended.stderr
