"""The tables of summaries, and the ordered steps that create them in a SQLite file.

`conversation_summaries` holds the summaries. A second table has the newest version of each conversation.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from ...sql.description import Column, Index, Table, create_in_sqlite, describe
from ...sql.schema import Schema, Step
from ...sql.scripts import Script

SUMMARIES = "conversation_summaries"
HEADS = "recollect_conversation_summaries_heads"

SUMMARIES_TABLE = Table(
    SUMMARIES,
    (
        Column("id", "identifier"),
        Column("conversation_id", "identifier"),
        Column("agent", required=False),
        Column("text"),
        Column("model", required=False),
        Column("token_length", "integer"),
        Column("covered_position", "integer", required=False),
        Column("version", "integer"),
        Column("created_at", "time"),
        Column("expires_at", "time", required=False),
    ),
    key=("id",),
    unique=(("conversation_id", "version"),),
    named=(Index("recollect_conversation_summaries_expiring", ("expires_at",)),),
    key_in_column=True,
)

HEADS_TABLE = Table(
    HEADS,
    (Column("conversation_id", "identifier"), Column("version", "integer")),
    key=("conversation_id",),
    key_in_column=True,
)

TABLES = (SUMMARIES_TABLE, HEADS_TABLE)


def create_summaries() -> Script[None]:
    """Create the table of summaries."""
    yield from create_in_sqlite([SUMMARIES_TABLE])


def create_heads() -> Script[None]:
    """Create the table of newest versions."""
    yield from create_in_sqlite([HEADS_TABLE])


@dataclass(frozen=True)
class SummarySchema(Schema):
    """The schema of summaries."""

    @property
    def scope(self) -> str:
        """A database has one store of summaries."""
        return SUMMARIES

    def steps(self) -> list[Step]:
        """Create the summaries, then the newest versions."""
        return [Step(step.__name__, step) for step in (create_summaries, create_heads)]

    def columns(self) -> Mapping[str, Set[str]]:
        """All columns: only Recollect creates these tables."""
        return {table.name: set(table.column_names) for table in TABLES}

    def describe(self) -> Any:
        """The tables as SQLAlchemy's `MetaData`."""
        return describe(TABLES)
