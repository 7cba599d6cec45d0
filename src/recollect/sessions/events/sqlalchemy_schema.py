"""The tables of the event log, for SQLAlchemy to make."""

from sqlalchemy import BigInteger, Column, MetaData, String, Table, Text

from ...sql.sqlalchemy.metadata import TIME
from .schema import EVENTS, HEADS


def describe() -> MetaData:
    """What the migrations lead to, and what `create_tables=True` makes."""
    metadata = MetaData()
    Table(
        EVENTS,
        metadata,
        Column("conversation_id", String, primary_key=True),
        Column("sequence_number", BigInteger, primary_key=True, autoincrement=False),
        Column("response_id", Text),
        Column("item_type", Text, nullable=False),
        *(Column(name, Text) for name in ("item_name", "role", "agent", "tool_call_id", "tool_name")),
        *(Column(name, Text) for name in ("model", "text", "reasoning_text", "call_arguments")),
        *(Column(name, Text) for name in ("call_output", "attachments")),
        Column("created_at", TIME, nullable=False),
        Column("ingested_at", TIME, nullable=False),
        Column("fingerprint", Text, nullable=False),
        Column("position", BigInteger),
    )
    Table(
        HEADS,
        metadata,
        Column("conversation_id", String, primary_key=True),
        Column("next_sequence", BigInteger, nullable=False),
        Column("tail", Text, nullable=False),
        Column("stamp", String, nullable=False),
    )
    return metadata
