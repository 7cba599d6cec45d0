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
from recollect.sql.sqlite.registry import close_all
from recollect.testing.contract import in_event_loop

OURS = {table.name for table in TABLES}


async def make(path: Path) -> None:
    async with MemoryStore(path, workers=0) as store:
        assert await store.get_memory("agent", "user") is None


def differences(path: Path) -> list[Any]:
    """What a file lacks of the described tables, or has beyond them."""
    engine = create_engine(f"sqlite:///{path}")
    options = {
        "compare_type": True,
        "include_name": lambda name, kind, _: kind != "table" or name in OURS,
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


def take_back(path: Path) -> None:
    """Make a file as it was before conversations could be quiet."""
    with closing(sqlite3.connect(path)) as connection:
        for name in (
            "conversations_due",
            "conversations_tenant_updated_at",
            "memory_runs_tenant_status_run_id",
        ):
            connection.execute(f"DROP INDEX recollect_{name}")
        for table in ("memory_id", "session_id", "tenant"):
            connection.execute(f"DROP INDEX recollect_conversations_{table}_created_at_conversation_id")
        connection.execute("DROP INDEX recollect_conversations_provided")
        for name in ("learn_at", "waiting_from", "settings_version"):
            connection.execute(f"ALTER TABLE conversations DROP COLUMN {name}")
        for table, columns in (("conversations", "session_id"), ("conversations", "memory_id, created_at")):
            name = f"recollect_{table}_{columns.replace(', ', '_')}"
            connection.execute(f"CREATE INDEX {name} ON {table} ({columns})")
        connection.execute("DELETE FROM recollect_migrations WHERE step = 'add_quiet_conversations'")
        connection.commit()


@in_event_loop
async def test_a_file_of_before_is_brought_up_to_date_and_keeps_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    said = [{"role": "user", "content": "I sail."}]
    async with MemoryStore(path, workers=0, embedder=None) as store:
        await store.record_conversation("agent", "user", said, conversation_id="c")
    close_all()  # else the file is held for a moment, with what is known of it
    take_back(path)
    assert differences(path) != []
    async with MemoryStore(path, workers=0, embedder=None) as store:
        await store.append_messages("c", said, learn_after=600)
        await store.close_conversation("c")
        runs = await store.list_runs_of("c")
        assert [(run.first_index, run.last_index) for run in runs] == [(0, 0), (1, 1)]
    assert differences(path) == []


NEWEST = (
    ("conversations", "metadata"),
    ("memory_contents", "metadata"),
    ("conversation_messages", "name"),
    ("conversation_messages", "attachments"),
)


@in_event_loop
async def test_a_file_without_names_and_metadata_gets_the_columns_and_keeps_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    said = [{"role": "user", "content": "I sail."}]
    async with MemoryStore(path, workers=0, embedder=None) as store:
        made = await store.record_conversation("agent", "user", said, conversation_id="c")
        entry = await store.add_entry("agent", "user", "profile", "The user sails.")
    close_all()
    with closing(sqlite3.connect(path)) as connection:
        for table in ("conversations", "memory_contents"):
            connection.execute(f"DROP INDEX recollect_{table}_described")
        for table, column in NEWEST:
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        connection.execute("DROP INDEX recollect_memories_tenant_user_key")
        connection.execute(
            "DELETE FROM recollect_migrations WHERE step IN ('add_names_and_metadata', 'add_tags')"
        )
        connection.commit()
    async with MemoryStore(path, workers=0, embedder=None) as store:
        stored = await store.get_conversation("c")
        assert stored is not None
        assert stored.messages == made.messages
        assert await store.get_entry(entry.content_id) == entry
        named = [{"role": "user", "content": "I row.", "name": "Bo"}]
        assert (await store.append_messages("c", named))[0].name == "Bo"
        assert [user.user_id for user in await store.list_users()] == ["user"]
    assert differences(path) == []


@in_event_loop
async def test_a_file_without_tags_gets_the_columns_and_keeps_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    said = [{"role": "user", "content": "I sail."}]
    async with MemoryStore(path, workers=0, embedder=None) as store:
        await store.record_conversation("agent", "user", said, conversation_id="c", metadata={"a": 1})
        entry = await store.add_entry("agent", "user", "profile", "The user sails.")
    close_all()
    with closing(sqlite3.connect(path)) as connection:
        for table in ("conversations", "memory_contents"):
            connection.execute(f"DROP INDEX recollect_{table}_tagged")
            connection.execute(f"DROP INDEX recollect_{table}_described")
            connection.execute(f"ALTER TABLE {table} DROP COLUMN tags")
        connection.execute("DELETE FROM recollect_migrations WHERE step = 'add_tags'")
        connection.commit()
    assert {change[0] for change in differences(path)} == {"add_column", "add_index"}
    async with MemoryStore(path, workers=0, embedder=None) as store:
        stored = await store.get_conversation("c")
        assert stored is not None
        assert (stored.tags, stored.metadata) == ((), {"a": 1})
        assert await store.get_entry(entry.content_id) == entry
        assert (await store.edit_entry(entry.content_id, "The user rows.", tags=["a"])).tags == ("a",)
    assert differences(path) == []


@in_event_loop
async def test_a_file_without_message_items_gets_the_table(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    await make(path)
    close_all()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE message_items")
        connection.execute("DELETE FROM recollect_migrations WHERE step = 'add_message_items'")
        connection.commit()
    assert [change[0] for change in differences(path)] == ["add_table"]
    await make(path)
    assert differences(path) == []


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
