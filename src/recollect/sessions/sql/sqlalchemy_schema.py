"""The tables, for SQLAlchemy to make: what the migrations lead to, and what `create_tables=True` makes."""

from typing import Any

from sqlalchemy import (
    JSON,
    TIMESTAMP,
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.mysql import LONGTEXT

from .tables import Tables

# MySQL cannot index a text without a length, compares texts loosely unless told not to, and has short ones
# of 64 KB; elsewhere a session's id and an item may be as long as they like.
_ID = String().with_variant(String(255, collation="utf8mb4_bin"), "mysql", "mariadb")
_LONG_TEXT = Text().with_variant(LONGTEXT(collation="utf8mb4_bin"), "mysql", "mariadb")
_COUNTED = BigInteger().with_variant(Integer, "sqlite")
_LONGEST_NAME = 63
_COUNTS = ("requests", "input_tokens", "output_tokens", "total_tokens")


def describe(tables: Tables) -> MetaData:
    """All tables of sessions: the Agents SDK's two, and ours beside them."""
    metadata = MetaData()
    _describe_history(metadata, tables)
    Table(
        tables.metadata,
        metadata,
        _session_of(tables, primary_key=True),
        Column("user_id", _ID),
        Column("agent_id", _ID),
        Column("title", _LONG_TEXT),
        Column("data", _LONG_TEXT, nullable=False),
        # By its hash on PostgreSQL, whose other indexes hold no texts of more than some 2,700 bytes.
        Index(f"{tables.metadata}_by_user"[:_LONGEST_NAME], "user_id", postgresql_using="hash"),
    )
    Table(
        tables.batches,
        metadata,
        _session_of(tables, primary_key=True),
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
    Table(
        tables.notes,
        metadata,
        _session_of(tables, primary_key=True),
        Column("note_key", _ID, primary_key=True),
        Column("version", Integer, nullable=False),
        Column("data", _LONG_TEXT, nullable=False),
    )
    if tables.advanced:
        _describe_branches(metadata, tables)
        _describe_usage(metadata, tables)
    return metadata


def _describe_branches(metadata: MetaData, tables: Tables) -> None:
    item = ForeignKey(f"{tables.messages}.id", ondelete="CASCADE")
    prefix = f"recollect_{tables.structure.removeprefix('recollect_')}"
    Table(
        tables.structure,
        metadata,
        Column("id", _COUNTED, primary_key=True, autoincrement=True),
        _session_of(tables, nullable=False),
        Column("message_id", _COUNTED, item, nullable=False),
        Column("branch_id", _ID, nullable=False, server_default=text("'main'")),
        Column("message_type", Text, nullable=False),
        Column("sequence_number", BigInteger, nullable=False),
        Column("user_turn_number", Integer),
        Column("branch_turn_number", Integer),
        Column("tool_name", Text),
        _time("created_at"),
        Index(f"{prefix}_in_order"[:_LONGEST_NAME], "session_id", "branch_id", "message_id"),
        Index(f"{prefix}_by_item"[:_LONGEST_NAME], "message_id"),
        Index(
            f"{prefix}_turns"[:_LONGEST_NAME],
            "session_id",
            "branch_id",
            "branch_turn_number",
            postgresql_where=text("message_type = 'user'"),
        ),
    )
    Table(
        tables.branches,
        metadata,
        _session_of(tables, primary_key=True),
        Column("branch_id", _ID, primary_key=True),
        Column("is_current", Integer, nullable=False),
        _time("created_at"),
    )


def _describe_usage(metadata: MetaData, tables: Tables) -> None:
    Table(
        tables.usage,
        metadata,
        Column("id", _COUNTED, primary_key=True, autoincrement=True),
        _session_of(tables, nullable=False),
        Column("branch_id", _ID, nullable=False, server_default=text("'main'")),
        Column("user_turn_number", Integer, nullable=False),
        *(Column(name, BigInteger, server_default=text("0")) for name in _COUNTS),
        Column("input_tokens_details", JSON),
        Column("output_tokens_details", JSON),
        _time("created_at"),
        UniqueConstraint("session_id", "branch_id", "user_turn_number"),
    )
    Table(
        tables.runs,
        metadata,
        _session_of(tables, primary_key=True),
        Column("run_id", _ID, primary_key=True),
        Column("usage", _LONG_TEXT, nullable=False),
    )


def _session_of(tables: Tables, **options: Any) -> Column[str]:
    owner = ForeignKey(f"{tables.sessions}.session_id", ondelete="CASCADE")
    return Column("session_id", _ID, owner, **options)


def _time(name: str) -> Column[object]:
    return Column(name, TIMESTAMP, nullable=False, server_default=text("CURRENT_TIMESTAMP"))


def _describe_history(metadata: MetaData, tables: Tables) -> None:
    Table(
        tables.sessions,
        metadata,
        Column("session_id", _ID, primary_key=True),
        _time("created_at"),
        _time("updated_at"),
    )
    Table(
        tables.messages,
        metadata,
        Column("id", _COUNTED, primary_key=True, autoincrement=True),
        _session_of(tables, nullable=False),
        Column("message_data", _LONG_TEXT, nullable=False),
        _time("created_at"),
        Index(f"recollect_{tables.messages}_by_session", "session_id", "id"),
        sqlite_autoincrement=True,
    )
