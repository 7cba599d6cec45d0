"""A described table, rendered for SQLite, PostgreSQL and MySQL."""

import sqlite3
from typing import Any, get_args

import pytest
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from recollect.sql.description import Column, Index, Kind, PartialIndex, Table, create_in_sqlite, describe
from recollect.sql.sqlite.connection import run_script

PARENTS = Table("parents", (Column("id", "identifier"),), key=("id",), key_in_column=True)
CHILDREN = Table(
    "children",
    (
        Column("id", "autoincrement"),
        Column("parent_id", "identifier", parent="parents.id"),
        Column("body", "long_text", sqlite_default="'{}'"),
        Column("kind", default="'plain'"),
        Column("created_at", "sdk_timestamp", default="CURRENT_TIMESTAMP"),
    ),
    key=("id",),
    unique=(("parent_id", "kind"),),
    indexes=(("kind", "id"),),
    partial=(PartialIndex("plain", ("parent_id",), "kind = 'plain'"),),
    named=(
        Index("children_by_parent", ("parent_id", "id"), database="sqlite"),
        Index("children_by_parent", ("parent_id",), method="hash", database="server"),
        Index("x" * 70, ("body",)),
    ),
)


def in_sqlite(*tables: Table) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    run_script(connection, create_in_sqlite(tables))
    return connection


def on_server(dialect: Any) -> tuple[str, dict[str, str]]:
    """The DDL of the children, and of their indexes by name."""
    table = describe((PARENTS, CHILDREN)).tables["children"]
    indexes = {str(index.name): str(CreateIndex(index).compile(dialect=dialect)) for index in table.indexes}
    return str(CreateTable(table).compile(dialect=dialect)), indexes


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_kind_of_column_has_a_type_in_each_database(kind: Kind) -> None:
    table = Table("one", (Column("value", kind),), key=("value",))
    in_sqlite(table)
    for dialect in (postgresql.dialect(), mysql.dialect()):
        assert "value" in str(CreateTable(describe([table]).tables["one"]).compile(dialect=dialect))


def test_sqlite_gets_what_older_files_have() -> None:
    connection = in_sqlite(PARENTS, CHILDREN)
    columns = {row[1]: row[2:] for row in connection.execute("PRAGMA table_info(children)")}
    assert columns == {
        "id": ("INTEGER", 0, None, 1),
        "parent_id": ("TEXT", 1, None, 0),
        "body": ("TEXT", 1, "'{}'", 0),
        "kind": ("TEXT", 1, "'plain'", 0),
        "created_at": ("TIMESTAMP", 0, "CURRENT_TIMESTAMP", 0),
    }
    assert connection.execute("PRAGMA table_info(parents)").fetchall() == [(0, "id", "TEXT", 0, None, 1)]
    names = {row[1] for row in connection.execute("PRAGMA index_list(children)")}
    assert {"recollect_children_kind_id", "recollect_children_plain", "children_by_parent", "x" * 70} < names
    by_parent = connection.execute("PRAGMA index_info(children_by_parent)").fetchall()
    assert [row[2] for row in by_parent] == ["parent_id", "id"]


def test_sqlite_creates_only_what_is_missing() -> None:
    connection = in_sqlite(PARENTS, CHILDREN)
    run_script(connection, create_in_sqlite((PARENTS, CHILDREN)))
    connection.execute("INSERT INTO parents VALUES ('p')")
    connection.execute("INSERT INTO children (parent_id) VALUES ('p')")
    assert connection.execute("SELECT id, body, kind FROM children").fetchall() == [(1, "{}", "plain")]


def test_postgresql_gets_its_own_types_and_indexes() -> None:
    table, indexes = on_server(postgresql.dialect())
    assert "id BIGSERIAL NOT NULL" in table
    assert "body TEXT NOT NULL," in table
    assert "kind TEXT DEFAULT 'plain' NOT NULL" in table
    assert "created_at TIMESTAMP WITHOUT TIME ZONE DEFAULT CURRENT_TIMESTAMP NOT NULL" in table
    assert "FOREIGN KEY(parent_id) REFERENCES parents (id) ON DELETE CASCADE" in table
    assert indexes["children_by_parent"].endswith("USING hash (parent_id)")
    assert indexes["recollect_children_plain"].endswith("WHERE kind = 'plain'")
    assert "x" * 63 in indexes


def test_mysql_gets_lengths_and_a_collation() -> None:
    table, indexes = on_server(mysql.dialect())
    assert "id BIGINT NOT NULL AUTO_INCREMENT" in table
    assert "parent_id VARCHAR(255) COLLATE utf8mb4_0900_bin NOT NULL" in table
    assert "body LONGTEXT COLLATE utf8mb4_bin NOT NULL" in table
    assert indexes["children_by_parent"].endswith("(parent_id)")


def test_a_foreign_key_may_refer_to_a_table_of_another_schema() -> None:
    table = describe([CHILDREN], parents=describe([PARENTS])).tables["children"]
    (key,) = table.foreign_keys
    assert key.column.table.name == "parents"
    assert "parents" not in table.metadata.tables
