"""The tables, for SQLAlchemy to make: what the migrations lead to, and what `create_tables=True` makes."""

from sqlalchemy import (
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
    text,
)

from ..sql.tables import Tables

# MySQL cannot index a text without a length; elsewhere a session's id may be as long as it likes.
_ID = String().with_variant(String(255), "mysql", "mariadb")
_COUNTED = BigInteger().with_variant(Integer, "sqlite")
_LONG_TEXT = Text()


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
        Index(f"{tables.metadata}_by_user", "user_id", "agent_id"),
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
