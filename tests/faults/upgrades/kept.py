"""A kept database, brought back to be opened, and what is to be seen in it past all our code."""

import gzip
import itertools
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

from recollect.memory.database.schema import MemorySchema
from recollect.providers.openai.database.schema import SESSION_TABLES, ChatSchema
from recollect.server.database.schema import ServiceSchema
from recollect.sessions.events import EventLog
from recollect.sessions.sql.schema import session_schema
from recollect.sessions.sql.tables import Tables
from recollect.sql.database import open_database
from recollect.sql.schema import Schema
from recollect.strategies.summaries import ConversationSummaryStore

from ...sessions.postgres.database import sql
from .postgres_tools import run_tool
from .releases import Release

Rows: TypeAlias = dict[str, list[dict[str, Any]]]

EVERYTHING: tuple[Schema, ...] = (
    session_schema(Tables(advanced=True)),
    EventLog.schema,
    ConversationSummaryStore.schema,
    MemorySchema(),
    ServiceSchema(),
    session_schema(SESSION_TABLES),
    ChatSchema(),
)
_OURS = ("recollect_migrations", "recollect_schema_version")  # what they say is meant to change
_DOCUMENTS = {"content_data", "memory_strategy", "pipeline_result", "result", "details", "made"}
_TOLD_ANEW = ("recollect_agent_messages_batches", "created_at")  # a text in the first files, then a number
_numbers = itertools.count()


def unpack(release: Release, folder: Path) -> str:
    """The file of a release, as it left it; its path."""
    path = folder / f"{release.name}.db"
    path.write_bytes(gzip.decompress(release.file.read_bytes()))
    return str(path)


@contextmanager
def new_database(server: str) -> Iterator[str]:
    """An empty database on a server, for a while; its URL."""
    name = f"upgrade_{os.getpid()}_{next(_numbers)}"
    sql(server, f"CREATE DATABASE {name}")
    try:
        yield server.rpartition("/")[0] + f"/{name}"
    finally:
        sql(server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@contextmanager
def restored(release: Release, server: str) -> Iterator[str]:
    """A database on a server as a release left it; its URL."""
    with new_database(server) as url:
        run_tool("psql", url, "--quiet", "--no-psqlrc", given=gzip.decompress(release.dump.read_bytes()))
        yield url


async def migrate_file(path: str) -> None:
    """Open a file with everything that today's code keeps in one: that migrates it."""
    database = open_database(path)
    for schema in EVERYTHING:
        await database.engine.prepare(schema)
    await database.aclose()


# --- what is there ---


def rows_in_file(path: str) -> Rows:
    """Every row of every table, the columns by their names."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        listed = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        names = [name for (name,) in listed if not name.startswith("sqlite_") and name not in _OURS]
        return {name: list(map(dict, connection.execute(f'SELECT * FROM "{name}"'))) for name in names}


def rows_in_database(url: str) -> Rows:
    """The same of a PostgreSQL."""
    listed = sql(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    found: Rows = {}
    for (name,) in listed:
        if name not in _OURS:
            rows = sql(url, f'SELECT to_jsonb(each)::text FROM "{name}" AS each')
            found[name] = [json.loads(row) for (row,) in rows]
    return found


def what_is_lost(before: Rows, after: Rows) -> list[str]:
    """The tables whose rows are not what they were, in the columns that they had."""
    return [name for name, rows in before.items() if _is_lost(name, rows, after.get(name, []))]


def _is_lost(table: str, before: list[dict[str, Any]], after: list[dict[str, Any]]) -> bool:
    columns = sorted({column for row in before for column in row if (table, column) != _TOLD_ANEW})
    return _sorted(columns, before) != _sorted(columns, after)


def _sorted(columns: list[str], rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr([_comparable(column, row.get(column)) for column in columns]) for row in rows)


def _comparable(column: str, value: Any) -> Any:
    """A value, the same for the text that a column of a server was and for the type that it has now."""
    if column in _DOCUMENTS and value is not None:
        return json.dumps(json.loads(value) if isinstance(value, str) else value, sort_keys=True)
    if (column == "at" or column.endswith("_at")) and isinstance(value, str):
        return datetime.fromisoformat(value)
    return value


def shape_of_file(path: str) -> dict[str, Any]:
    """The tables of a file with their columns, and its indexes, in whatever order they came about."""
    with closing(sqlite3.connect(path)) as connection:
        listed = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
        shape: dict[str, Any] = {}
        for kind, name, table, text in listed:
            if kind == "table":
                columns = connection.execute(f'PRAGMA table_info("{name}")').fetchall()
                shape[name] = sorted(column[1:] for column in columns)
            else:
                shape[name] = (kind, table, text and text.replace('"', ""))  # quotes change nothing
        return shape


_SHAPE = (
    "SELECT 'column ' || table_name || '.' || column_name,"
    " concat_ws(' ', data_type, is_nullable, column_default)"
    " FROM information_schema.columns WHERE table_schema = 'public'",
    "SELECT 'index ' || indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "SELECT 'rule ' || conrelid::regclass || '.' || conname, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE connamespace = 'public'::regnamespace",
    "SELECT 'storage ' || attrelid::regclass, attstorage::text FROM pg_attribute"
    " WHERE attname = 'content_vector'"
    " AND attrelid IN ('memory_contents'::regclass, 'conversation_messages'::regclass)",
)


def shape_of_database(url: str) -> dict[str, Any]:
    """The columns, indexes and rules of a PostgreSQL, in whatever order they came about."""
    return {name: told for query in _SHAPE for name, told in sql(url, query)}


def what_is_not_told(told: Any, today: Any, place: str = "") -> list[str]:
    """Where today's reading does not tell what an earlier one told; it may tell more."""
    if isinstance(told, dict) and isinstance(today, dict):
        # An export names its own format, which may be a newer one.
        names = told.keys() - ({"format"} if place.startswith("/memory/exports/") else set())
        pairs = [(told[name], today.get(name, "nothing"), f"{place}/{name}") for name in sorted(names)]
    elif isinstance(told, list) and isinstance(today, list) and len(told) == len(today):
        pairs = [(*each, f"{place}/{number}") for number, each in enumerate(zip(told, today, strict=True))]
    else:
        return [] if told == today else [place]
    return [lost for pair in pairs for lost in what_is_not_told(*pair)]
