"""The tables of chats: migrations, `create_tables` and SQLite's own steps lead to what is described."""

from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect

from recollect import MissingTablesError
from recollect.memory.database.access import MemoryDatabase
from recollect.migrations import migrate
from recollect.providers.openai.database.schema import SESSION_TABLES, ChatSchema
from recollect.providers.openai.provider import build_openai_provider
from recollect.sessions.sql.schema import session_schema
from recollect.testing.contract import in_event_loop

from ..providers_openai.chats import Place, open_chat
from .test_migrations import differences, empty_database

__all__ = ["empty_database"]

SCHEMAS = (session_schema(SESSION_TABLES), MemoryDatabase.schema, ChatSchema())


async def chat_once(place: Place) -> str:
    async with open_chat(place) as chat:
        await chat.begin()
        return (await chat.say("Hello.")).text


@in_event_loop
async def test_the_migrations_give_the_described_tables_of_chats(empty_database: str) -> None:
    assert await differences(empty_database, *SCHEMAS) != [], "the comparison sees what is missing"
    await migrate(empty_database)
    assert await differences(empty_database, *SCHEMAS) == []
    assert await chat_once(Place(empty_database))


@in_event_loop
async def test_create_tables_gives_the_described_tables_of_chats(empty_database: str) -> None:
    assert await chat_once(Place(empty_database, create_tables=True))
    assert await differences(empty_database, *SCHEMAS) == []


@in_event_loop
async def test_without_tables_a_server_says_that_a_migration_is_needed(empty_database: str) -> None:
    provider = build_openai_provider(empty_database)
    with pytest.raises(MissingTablesError):
        await provider._parts.turns.get("turn")
    await provider.aclose()


@in_event_loop
async def test_a_file_gets_the_same_tables_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    await chat_once(Place(str(path)))
    engine = create_engine(f"sqlite:///{path}")
    found = inspect(engine)
    for schema in (SCHEMAS[0], SCHEMAS[2]):
        for table in schema.describe().sorted_tables:
            stored = {column["name"]: column["nullable"] for column in found.get_columns(table.name)}
            assert list(stored) == [column.name for column in table.columns], table.name
            parents = {
                (key["referred_table"], key["options"].get("ondelete"))
                for key in found.get_foreign_keys(table.name)
            }
            described = {(key.column.table.name, key.ondelete) for key in table.foreign_keys}
            assert parents == described, table.name
    engine.dispose()
