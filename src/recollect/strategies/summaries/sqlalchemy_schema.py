"""The tables of summaries, for SQLAlchemy to make."""

from sqlalchemy import BigInteger, Column, Index, MetaData, String, Table, Text, UniqueConstraint

from ...sql.sqlalchemy.metadata import TIME
from .schema import EXPIRING, HEADS, SUMMARIES


def describe() -> MetaData:
    """What the migrations lead to, and what `create_tables=True` makes."""
    metadata = MetaData()
    Table(
        SUMMARIES,
        metadata,
        Column("id", String, primary_key=True),
        Column("conversation_id", String, nullable=False),
        Column("agent", Text),
        Column("text", Text, nullable=False),
        Column("model", Text),
        Column("token_length", BigInteger, nullable=False),
        Column("covered_position", BigInteger),
        Column("version", BigInteger, nullable=False),
        Column("created_at", TIME, nullable=False),
        Column("expires_at", TIME),
        UniqueConstraint("conversation_id", "version"),
        Index(EXPIRING, "expires_at"),
    )
    Table(
        HEADS,
        metadata,
        Column("conversation_id", String, primary_key=True),
        Column("version", BigInteger, nullable=False),
    )
    return metadata
