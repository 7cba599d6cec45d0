"""The tables, for SQLAlchemy to make: what the migrations lead to, and what `create_tables=True` makes."""

from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.mysql import LONGTEXT

from ..sql.tables import Tables

# MySQL cannot index a text without a length, compares texts loosely unless told not to, and has short ones
# of 64 KB; elsewhere a session's id and an item may be as long as they like.
_ID = String().with_variant(String(255, collation="utf8mb4_bin"), "mysql", "mariadb")
_LONG_TEXT = Text().with_variant(LONGTEXT(collation="utf8mb4_bin"), "mysql", "mariadb")
_COUNTED = BigInteger().with_variant(Integer, "sqlite")
_LONGEST_NAME = 63


def make_missing_tables(tables: Tables, connection: Connection) -> None:
    """Make the tables that are not there; those who do it at once wait for each other."""
    with _nobody_else(connection, tables):
        describe(tables).create_all(connection)


def make_missing_indexes(tables: Tables, connection: Connection) -> None:
    """Make the indexes that are not there: tables that the SDK has made lack ours.

    In a transaction of its own, so that it locks but one table, and cannot meet a writer who has another.
    """
    with _nobody_else(connection, tables):
        for table in describe(tables).sorted_tables:
            for index in table.indexes:
                index.create(connection, checkfirst=True)


@contextmanager
def _nobody_else(connection: Connection, tables: Tables) -> Iterator[None]:
    key = crc32(f"recollect/{tables.sessions}/{tables.messages}".encode())
    if connection.dialect.name == "postgresql":  # until the end of the transaction
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({key})")
        yield
    else:
        connection.exec_driver_sql(f"SELECT GET_LOCK('{key}', 60)")
        try:
            yield
        finally:
            connection.exec_driver_sql(f"SELECT RELEASE_LOCK('{key}')")


def describe(tables: Tables) -> MetaData:
    """All tables of sessions: the Agents SDK's two, and ours beside them."""
    metadata = MetaData()
    _describe_history(metadata, tables)

    def owned_by_session() -> ForeignKey:
        return ForeignKey(f"{tables.sessions}.session_id", ondelete="CASCADE")

    Table(
        tables.metadata,
        metadata,
        Column("session_id", _ID, owned_by_session(), primary_key=True),
        Column("user_id", _ID),
        Column("agent_id", _ID),
        Column("title", _LONG_TEXT),
        Column("data", _LONG_TEXT, nullable=False),
        Index(f"{tables.metadata}_by_user"[:_LONGEST_NAME], "user_id", "agent_id"),
    )
    Table(
        tables.batches,
        metadata,
        Column("session_id", _ID, owned_by_session(), primary_key=True),
        Column("batch_id", _ID, primary_key=True),
        Column("created_at", Double, nullable=False),
    )
    Table(
        tables.leases,
        metadata,
        Column("session_id", _ID, primary_key=True),
        Column("owner", _ID, nullable=False),
        Column("expires_at", Double, nullable=False),
    )
    return metadata


def _describe_history(metadata: MetaData, tables: Tables) -> None:
    def time(name: str) -> Column[object]:
        return Column(name, TIMESTAMP, nullable=False, server_default=text("CURRENT_TIMESTAMP"))

    Table(
        tables.sessions,
        metadata,
        Column("session_id", _ID, primary_key=True),
        time("created_at"),
        time("updated_at"),
    )
    Table(
        tables.messages,
        metadata,
        Column("id", _COUNTED, primary_key=True, autoincrement=True),
        Column(
            "session_id",
            _ID,
            ForeignKey(f"{tables.sessions}.session_id", ondelete="CASCADE"),
            nullable=False,
        ),
        Column("message_data", _LONG_TEXT, nullable=False),
        time("created_at"),
        Index(f"recollect_{tables.messages}_by_session", "session_id", "id"),
        sqlite_autoincrement=True,
    )
