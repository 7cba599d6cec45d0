"""SQLite files get the tables that SQLAlchemy is told of."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import BigInteger

from recollect.sessions.events import EventLog
from recollect.strategies.summaries import ConversationSummaryStore
from recollect.testing.contract import in_event_loop

STORES = pytest.mark.parametrize("kind", [EventLog, ConversationSummaryStore])
Kind = type[EventLog] | type[ConversationSummaryStore]
Column = tuple[str, str, bool, bool]


def described(kind: Kind) -> dict[str, set[Column]]:
    """For each table its columns: name, type, whether it must be given, whether it is of the key."""
    return {
        table.name: {
            (
                column.name,
                "INTEGER" if isinstance(column.type, BigInteger) else "TEXT",
                not column.nullable,
                column.primary_key,
            )
            for column in table.columns
        }
        for table in kind.schema.describe().sorted_tables
    }


def made(path: Path, tables: Any) -> dict[str, set[Column]]:
    with closing(sqlite3.connect(path)) as connection:
        return {
            table: {
                (name, type_, bool(needed or key), bool(key))
                for _, name, type_, needed, _, key in connection.execute(f"PRAGMA table_info({table})")
            }
            for table in tables
        }


@STORES
@in_event_loop
async def test_a_file_has_the_described_tables(tmp_path: Path, kind: Kind) -> None:
    async with kind(tmp_path / "store.db") as store:
        await store.delete("nothing")
    expected = described(kind)
    assert made(tmp_path / "store.db", expected) == expected
    assert set(kind.schema.columns()) == set(expected)


@STORES
@in_event_loop
async def test_a_reader_of_a_file_that_is_ready_changes_nothing(tmp_path: Path, kind: Kind) -> None:
    path = tmp_path / "store.db"
    for _ in range(2):
        async with kind(path) as store:
            await store.delete("nothing")
    with closing(sqlite3.connect(path)) as connection:
        (steps,) = connection.execute("SELECT count(*) FROM recollect_migrations").fetchone()
    assert steps == 1
