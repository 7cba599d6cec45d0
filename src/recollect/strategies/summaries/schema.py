"""The tables of summaries.

`conversation_summaries` holds the summaries. A second table has the newest version of each conversation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ...sql.description import Column, Index, Table
from ...sql.schema import Schema

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
)

HEADS_TABLE = Table(
    HEADS,
    (Column("conversation_id", "identifier"), Column("version", "integer")),
    key=("conversation_id",),
)

TABLES = (SUMMARIES_TABLE, HEADS_TABLE)


@dataclass(frozen=True)
class SummarySchema(Schema):
    """The schema of summaries."""

    @property
    def scope(self) -> str:
        """A database has one store of summaries."""
        return SUMMARIES

    def described(self) -> Sequence[Table]:
        """The summaries, and their newest versions."""
        return TABLES
