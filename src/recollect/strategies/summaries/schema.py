"""The tables of summaries, and the ordered steps that make them in a SQLite file.

`conversation_summaries` holds the summaries. Beside it stands, for each conversation, the newest version.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from ...sql.schema import Schema, Step
from ...sql.scripts import Script, Statement
from .summary import COLUMNS

SUMMARIES = "conversation_summaries"
HEADS = "recollect_conversation_summaries_heads"
EXPIRING = "recollect_conversation_summaries_expiring"


def create_summaries() -> Script[None]:
    """The summaries, by conversation and version."""
    yield Statement(
        f"CREATE TABLE IF NOT EXISTS {SUMMARIES} ("
        " id TEXT PRIMARY KEY,"
        " conversation_id TEXT NOT NULL,"
        " agent TEXT,"
        " text TEXT NOT NULL,"
        " model TEXT,"
        " token_length INTEGER NOT NULL,"
        " covered_position INTEGER,"
        " version INTEGER NOT NULL,"
        " created_at TEXT NOT NULL,"
        " expires_at TEXT,"
        " UNIQUE (conversation_id, version))"
    )
    yield Statement(f"CREATE INDEX IF NOT EXISTS {EXPIRING} ON {SUMMARIES} (expires_at)")


def create_heads() -> Script[None]:
    """The newest version of each conversation."""
    yield Statement(
        f"CREATE TABLE IF NOT EXISTS {HEADS} (conversation_id TEXT PRIMARY KEY, version INTEGER NOT NULL)"
    )


@dataclass(frozen=True)
class SummarySchema(Schema):
    """The schema of summaries."""

    @property
    def scope(self) -> str:
        """There is one store in a database."""
        return SUMMARIES

    def steps(self) -> list[Step]:
        """The summaries, then the versions."""
        return [Step(step.__name__, step) for step in (create_summaries, create_heads)]

    def columns(self) -> Mapping[str, Set[str]]:
        """All of them: nobody else makes these tables."""
        return {SUMMARIES: set(COLUMNS), HEADS: {"conversation_id", "version"}}

    def describe(self) -> Any:
        """As SQLAlchemy's `MetaData`."""
        from .sqlalchemy_schema import describe

        return describe()
