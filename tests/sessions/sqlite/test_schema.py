"""The migrations give the schema that is written down here, whatever stood there before."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from recollect import SchemaMismatchError, SQLiteSession
from recollect.sessions.sql.schema import session_schema
from recollect.sessions.sql.tables import Tables
from recollect.sql.description import create_tables_in_sqlite
from recollect.sql.sqlite.connection import run_script
from recollect.sql.sqlite.migrations import is_migrated, migrate
from recollect.testing.contract import in_event_loop, message, texts

# For each table: columns as (name, type, not null, default, place in the primary key), foreign keys as
# (column, table, column, on delete), and indexes by name, those that SQLite makes itself left out.
NOW = "CURRENT_TIMESTAMP"


def schema(sessions: str, messages: str) -> dict[str, Any]:
    of_a_session = [("session_id", sessions, "session_id", "CASCADE")]
    return {
        sessions: {
            "columns": [
                ("session_id", "TEXT", False, None, 1),
                ("created_at", "TIMESTAMP", False, NOW, 0),
                ("updated_at", "TIMESTAMP", False, NOW, 0),
            ],
            "foreign keys": [],
            "indexes": {},
        },
        messages: {
            "columns": [
                ("id", "INTEGER", False, None, 1),
                ("session_id", "TEXT", True, None, 0),
                ("message_data", "TEXT", True, None, 0),
                ("created_at", "TIMESTAMP", False, NOW, 0),
            ],
            "foreign keys": of_a_session,
            "indexes": {f"recollect_{messages}_by_session": ["session_id", "id"]},
        },
        f"recollect_{sessions}_metadata": {
            "columns": [
                ("session_id", "TEXT", True, None, 1),
                ("user_id", "TEXT", False, None, 0),
                ("agent_id", "TEXT", False, None, 0),
                ("title", "TEXT", False, None, 0),
                ("data", "TEXT", True, "'{}'", 0),
            ],
            "foreign keys": of_a_session,
            "indexes": {f"recollect_{sessions}_metadata_by_user": ["user_id", "agent_id"]},
        },
        f"recollect_{messages}_batches": {
            "columns": [
                ("session_id", "TEXT", True, None, 1),
                ("batch_id", "TEXT", True, None, 2),
                ("created_at", "REAL", True, None, 0),
            ],
            "foreign keys": of_a_session,
            "indexes": {},
        },
        f"recollect_{sessions}_leases": {
            "columns": [
                ("session_id", "TEXT", True, None, 1),
                ("owner", "TEXT", True, None, 0),
                ("expires_at", "REAL", True, None, 0),
            ],
            "foreign keys": [],
            "indexes": {},
        },
        f"recollect_{sessions}_notes": {
            "columns": [
                ("session_id", "TEXT", True, None, 1),
                ("note_key", "TEXT", True, None, 2),
                ("version", "INTEGER", True, None, 0),
                ("data", "TEXT", True, None, 0),
            ],
            "foreign keys": of_a_session,
            "indexes": {},
        },
        "recollect_migrations": {
            "columns": [
                ("scope", "TEXT", True, None, 1),
                ("step", "TEXT", True, None, 2),
                ("applied_at", "TIMESTAMP", False, NOW, 0),
            ],
            "foreign keys": [],
            "indexes": {},
        },
    }


def advanced_schema(sessions: str, messages: str) -> dict[str, Any]:
    of_a_session = ("session_id", sessions, "session_id", "CASCADE")
    key_of_branch = [("session_id", "TEXT", True, None, 1), ("branch_id", "TEXT", True, None, 2)]
    return {
        **schema(sessions, messages),
        "message_structure": {
            "columns": [
                ("id", "INTEGER", False, None, 1),
                ("session_id", "TEXT", True, None, 0),
                ("message_id", "INTEGER", True, None, 0),
                ("branch_id", "TEXT", True, "'main'", 0),
                ("message_type", "TEXT", True, None, 0),
                ("sequence_number", "INTEGER", True, None, 0),
                ("user_turn_number", "INTEGER", False, None, 0),
                ("branch_turn_number", "INTEGER", False, None, 0),
                ("tool_name", "TEXT", False, None, 0),
                ("created_at", "TIMESTAMP", False, NOW, 0),
            ],
            "foreign keys": [("message_id", messages, "id", "CASCADE"), of_a_session],
            "indexes": {
                "recollect_message_structure_turns": ["session_id", "branch_id", "branch_turn_number"],
                "recollect_message_structure_by_item": ["message_id"],
                "recollect_message_structure_in_order": ["session_id", "branch_id", "message_id"],
            },
        },
        "turn_usage": {
            "columns": [
                ("id", "INTEGER", False, None, 1),
                ("session_id", "TEXT", True, None, 0),
                ("branch_id", "TEXT", True, "'main'", 0),
                ("user_turn_number", "INTEGER", True, None, 0),
                ("requests", "INTEGER", False, "0", 0),
                ("input_tokens", "INTEGER", False, "0", 0),
                ("output_tokens", "INTEGER", False, "0", 0),
                ("total_tokens", "INTEGER", False, "0", 0),
                ("input_tokens_details", "JSON", False, None, 0),
                ("output_tokens_details", "JSON", False, None, 0),
                ("created_at", "TIMESTAMP", False, NOW, 0),
            ],
            "foreign keys": [of_a_session],
            "indexes": {},
        },
        f"recollect_{sessions}_runs": {
            "columns": [
                ("session_id", "TEXT", True, None, 1),
                ("run_id", "TEXT", True, None, 2),
                ("usage", "TEXT", True, None, 0),
            ],
            "foreign keys": [of_a_session],
            "indexes": {},
        },
        f"recollect_{sessions}_branches": {
            "columns": [
                *key_of_branch,
                ("is_current", "INTEGER", True, None, 0),
                ("created_at", "TIMESTAMP", False, NOW, 0),
            ],
            "foreign keys": [of_a_session],
            "indexes": {},
        },
    }


SCHEMA = schema("agent_sessions", "agent_messages")


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        yield connection


def described(connection: sqlite3.Connection) -> dict[str, Any]:
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {name: described_table(connection, name) for (name,) in tables if name != "sqlite_sequence"}


def described_table(connection: sqlite3.Connection, table: str) -> dict[str, Any]:
    columns = connection.execute(f'PRAGMA table_info("{table}")').fetchall()
    keys = connection.execute(f'PRAGMA foreign_key_list("{table}")').fetchall()
    indexes = connection.execute(f'PRAGMA index_list("{table}")').fetchall()
    return {
        "columns": [(name, kind, bool(nn), default, pk) for _, name, kind, nn, default, pk in columns],
        "foreign keys": [(key[3], key[2], key[4], key[6]) for key in keys],
        "indexes": {
            index[1]: [row[2] for row in connection.execute(f'PRAGMA index_info("{index[1]}")')]
            for index in indexes
            if not index[1].startswith("sqlite_autoindex")
        },
    }


def steps(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    return connection.execute("SELECT scope, step FROM recollect_migrations ORDER BY rowid").fetchall()


def test_the_migrations_give_the_schema(connection: sqlite3.Connection) -> None:
    run_script(connection, migrate(session_schema(Tables())))
    assert described(connection) == SCHEMA
    assert steps(connection) == [("agent_sessions/agent_messages", "0.1.0")]


@pytest.mark.parametrize("names", [(), ("my_sessions", "my_messages")])
def test_advanced_sessions_get_their_tables_beside_the_others(
    connection: sqlite3.Connection, names: tuple[str, ...]
) -> None:
    run_script(connection, migrate(session_schema(Tables(*names))))
    run_script(connection, migrate(session_schema(Tables(*names, advanced=True))))
    assert described(connection) == advanced_schema(*names or ("agent_sessions", "agent_messages"))
    run_script(connection, migrate(session_schema(Tables(*names))))
    assert run_script(connection, is_migrated(session_schema(Tables(*names, advanced=True))))


def test_the_structure_of_other_tables_is_refused(connection: sqlite3.Connection) -> None:
    run_script(connection, migrate(session_schema(Tables(advanced=True))))
    with pytest.raises(SchemaMismatchError, match=r"message_structure.*agent_messages"):
        run_script(connection, migrate(session_schema(Tables("my_sessions", "my_messages", advanced=True))))
    connection.execute("DROP TABLE message_structure")
    connection.execute("CREATE TABLE message_structure (id INTEGER PRIMARY KEY)")
    with pytest.raises(SchemaMismatchError, match=r"message_structure.*lacks the columns branch_id"):
        run_script(connection, migrate(session_schema(Tables(advanced=True))))


@in_event_loop
async def test_a_session_makes_the_same_schema_in_its_file(tmp_path: Path) -> None:
    async with SQLiteSession("s", tmp_path / "s.db") as session:
        assert await session.get_items() == []
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        assert described(connection) == SCHEMA
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_ids_are_never_used_again(connection: sqlite3.Connection) -> None:
    run_script(connection, migrate(session_schema(Tables())))
    connection.execute("INSERT INTO agent_sessions (session_id) VALUES ('s')")
    add = "INSERT INTO agent_messages (session_id, message_data) VALUES ('s', '{}') RETURNING id"
    assert connection.execute(add).fetchone() == (1,)
    connection.execute("DELETE FROM agent_messages")
    assert connection.execute(add).fetchone() == (2,)


def test_migrating_again_changes_nothing(connection: sqlite3.Connection) -> None:
    run_script(connection, migrate(session_schema(Tables())))
    connection.execute("INSERT INTO agent_sessions (session_id) VALUES ('s')")
    connection.execute("UPDATE recollect_migrations SET applied_at = 'long ago'")
    before = list(connection.iterdump()), connection.execute("PRAGMA schema_version").fetchone()
    changes = connection.total_changes
    run_script(connection, migrate(session_schema(Tables())))
    assert (list(connection.iterdump()), connection.execute("PRAGMA schema_version").fetchone()) == before
    assert connection.total_changes == changes


def test_a_step_that_was_recorded_is_not_run_again(connection: sqlite3.Connection) -> None:
    run_script(connection, migrate(session_schema(Tables())))
    connection.execute("DROP INDEX recollect_agent_messages_by_session")
    run_script(connection, migrate(session_schema(Tables())))
    assert described(connection)["agent_messages"]["indexes"] == {}


def test_tables_that_were_dropped_are_made_again(connection: sqlite3.Connection) -> None:
    run_script(connection, migrate(session_schema(Tables())))
    connection.execute("DROP TABLE agent_messages")
    connection.execute("DROP TABLE agent_sessions")
    run_script(connection, migrate(session_schema(Tables())))
    assert described(connection) == SCHEMA


def test_a_table_of_another_shape_is_left_as_it_is(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE agent_sessions (session_id TEXT, created_at TIMESTAMP)")
    before = described(connection)
    with pytest.raises(
        SchemaMismatchError, match="'agent_sessions' does not fit: it lacks the columns updated_at"
    ):
        run_script(connection, migrate(session_schema(Tables())))
    assert described(connection) == before


# --- indexes that were there before ---


def with_history(connection: sqlite3.Connection, index: str) -> dict[str, list[str]]:
    """The indexes after migrating a file of others that has this index."""
    run_script(connection, create_tables_in_sqlite(session_schema(Tables()).described()))
    connection.execute(f"CREATE INDEX theirs ON agent_messages ({index})")
    run_script(connection, migrate(session_schema(Tables())))
    indexes: dict[str, list[str]] = described(connection)["agent_messages"]["indexes"]
    return indexes


def test_an_index_in_the_order_of_reading_is_used_as_it_is(connection: sqlite3.Connection) -> None:
    assert with_history(connection, "session_id, id") == {"theirs": ["session_id", "id"]}


@pytest.mark.parametrize("index", ["session_id, created_at", "session_id", "id, session_id"])
def test_another_index_stays_beside_ours(connection: sqlite3.Connection, index: str) -> None:
    assert with_history(connection, index) == {
        "theirs": index.split(", "),
        "recollect_agent_messages_by_session": ["session_id", "id"],
    }


# --- other names ---


def test_tables_may_have_other_names(connection: sqlite3.Connection) -> None:
    run_script(connection, migrate(session_schema(Tables("chats", "Lines"))))
    assert described(connection) == schema("chats", "Lines")
    assert steps(connection) == [("chats/Lines", "0.1.0")]


def test_two_pairs_of_tables_stand_side_by_side(connection: sqlite3.Connection) -> None:
    run_script(connection, migrate(session_schema(Tables())))
    run_script(connection, migrate(session_schema(Tables("chats", "lines"))))
    assert described(connection) == {**SCHEMA, **schema("chats", "lines")}
    assert len(steps(connection)) == 2


@in_event_loop
async def test_two_pairs_of_tables_in_one_file_are_strangers(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SQLiteSession("s", path) as one, SQLiteSession("s", path, "chats", "lines") as two:
        await one.add_items([message("one")])
        await two.add_items([message("two")])
        assert texts(await one.get_items()) == ["one"]
        await one.clear_session()
        assert texts(await two.get_items()) == ["two"]


def test_names_of_ours_follow_from_theirs() -> None:
    tables = Tables("chats", "lines")
    assert tables.metadata == "recollect_chats_metadata"
    assert tables.leases == "recollect_chats_leases"
    assert tables.batches == "recollect_lines_batches"
