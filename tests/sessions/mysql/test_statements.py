"""The tables and statements for MySQL. `test_contract.py` runs them on a server."""

import re

import pytest
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateIndex, CreateTable

from recollect.sessions.sql.dialects import MySQLQueries
from recollect.sessions.sql.schema import session_schema
from recollect.sessions.sql.tables import Tables

STATEMENTS = {name: text for name, text in vars(MySQLQueries(Tables())).items() if isinstance(text, str)}


def test_the_tables_can_be_written_for_mysql() -> None:
    ddl = {
        table.name: str(CreateTable(table).compile(dialect=mysql.dialect()))
        for table in session_schema(Tables()).describe().sorted_tables
    }
    assert set(ddl) == {
        "agent_sessions",
        "agent_messages",
        "recollect_agent_sessions_metadata",
        "recollect_agent_sessions_notes",
        "recollect_agent_messages_batches",
        "recollect_agent_sessions_leases",
    }
    assert "message_data LONGTEXT COLLATE utf8mb4_bin NOT NULL" in ddl["agent_messages"]
    assert "id BIGINT NOT NULL AUTO_INCREMENT" in ddl["agent_messages"]
    assert all("session_id VARCHAR(255) COLLATE utf8mb4_0900_bin NOT NULL" in text for text in ddl.values())


def test_the_indexes_can_be_written_for_mysql_under_names_that_fit() -> None:
    for tables in (Tables(), Tables("s" * 40, "m" * 40)):
        indexes = [
            index for table in session_schema(tables).describe().sorted_tables for index in table.indexes
        ]
        assert len(indexes) == 2
        for index in indexes:
            assert str(CreateIndex(index).compile(dialect=mysql.dialect())).startswith("CREATE INDEX")


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_a_statement_has_no_words_that_mysql_does_not_know(name: str) -> None:
    assert not re.search(r'"|ON CONFLICT|RETURNING|excluded|VARCHAR', STATEMENTS[name])


def test_a_batch_is_many_rows_in_one_step() -> None:
    touch, *inserts = MySQLQueries(Tables()).append("s", ["{}"] * 120, None)
    assert touch.sql.startswith("INSERT INTO `agent_sessions`")
    assert [len(insert.parameters) - 1 for insert in inserts] == [50, 50, 20]
