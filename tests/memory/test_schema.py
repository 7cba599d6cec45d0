"""SQLite files get the tables that SQLAlchemy is told of."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, text

from recollect.memory.database.schema import TABLES, MemorySchema
from recollect.memory.store import MemoryStore
from recollect.testing.contract import in_event_loop

OURS = {table.name for table in TABLES}
ON_SERVERS = {index.name for table in TABLES for index in table.named if index.database == "server"}


async def make(path: Path) -> None:
    async with MemoryStore(path, workers=0) as store:
        assert await store.get_memory("agent", "user") is None


def differences(path: Path) -> list[Any]:
    """What a file lacks of the described tables, or has beyond them."""
    engine = create_engine(f"sqlite:///{path}")
    options = {
        "compare_type": True,
        "include_name": lambda name, kind, _: kind != "table" or name in OURS,
        "include_object": lambda _, name, kind, *__: kind != "index" or name not in ON_SERVERS,
    }
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, MemorySchema().describe()))


@in_event_loop
async def test_a_file_has_the_described_tables_and_indexes(tmp_path: Path) -> None:
    await make(tmp_path / "memory.db")
    assert differences(tmp_path / "memory.db") == []


@in_event_loop
async def test_the_comparison_sees_a_missing_index(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    await make(path)
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        connection.execute(text("DROP INDEX recollect_memory_queue_available_at"))
    assert [change[0] for change in differences(path)] == ["add_index"]


@in_event_loop
async def test_a_row_goes_with_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with MemoryStore(path, workers=0) as store:
        await store.record_conversation("agent", "user", [{"role": "user", "content": "I sail."}])
        await store.add_entry("agent", "user", "profile", "The user sails.")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("DELETE FROM memories")
        left = {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in OURS}
    assert left == dict.fromkeys(OURS, 0)


def test_every_table_has_a_tenant() -> None:
    assert [table.name for table in TABLES if "tenant" not in table.column_names] == []
