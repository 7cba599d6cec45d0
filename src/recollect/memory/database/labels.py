"""Finds conversations and entries by their tags and metadata, and entries by who said their evidence.

Values are compared in Python: SQLite and PostgreSQL then
agree on what is equal, and a corrupt label does not stop a search.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...sql.columns import json_from_column
from ...sql.description import Table
from ...sql.scripts import Row
from ..metadata import has_metadata
from .corruption import stored_object, value_or
from .dialect import Dialect
from .schema import CONTENTS, CONVERSATIONS, DESCRIBED, EVIDENCE, MESSAGES, TAGGED


@dataclass(frozen=True)
class LabelMatches:
    """The conversations or entries that have all wanted tags or all wanted metadata."""

    ids: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()
    """Those of the wanted tags or keys that at least one conversation or entry has."""


def match_tags(table: str, wanted: frozenset[str], rows: list[Row]) -> LabelMatches:
    """The rows that have all wanted tags. Corrupt tags count as absent."""
    ids, known = set(), set[str]()
    for row_id, stored in rows:
        found = wanted & value_or(table, row_id, _tags_from, stored, frozenset())
        known |= found
        if found == wanted:
            ids.add(row_id)
    return LabelMatches(frozenset(ids), frozenset(known))


def match_metadata(table: str, wanted: Mapping[str, Any], rows: list[Row]) -> LabelMatches:
    """The rows that have equal values under all wanted keys. Corrupt metadata counts as absent."""
    ids, known = set(), set[str]()
    for row_id, stored in rows:
        metadata = value_or(table, row_id, stored_object, stored, {})
        known |= wanted.keys() & metadata.keys()
        if has_metadata(wanted, metadata):
            ids.add(row_id)
    return LabelMatches(frozenset(ids), frozenset(known))


def _tags_from(stored: Any) -> frozenset[str]:
    parsed = json_from_column(stored)
    if not isinstance(parsed, list):
        raise TypeError("not a list")
    return frozenset(parsed)


class LabelQueries:
    """The statements in one dialect. Memories are a JSON list of their ids."""

    def __init__(self, dialect: Dialect) -> None:
        self._of_memories = f"memory_id {dialect.among_listed('?1')}"
        self.of_session = (
            f"SELECT conversation_id FROM {CONVERSATIONS.name} WHERE {self._of_memories} AND session_id = ?2"
        )
        self.learned_from = (
            f"SELECT DISTINCT content_id FROM {EVIDENCE.name} WHERE tenant = ?1"
            f" AND conversation_id IN {dialect.each.format('?2')}"
        )
        # A missing role or name is an empty text, which none is.
        self.said_by = (
            f"SELECT DISTINCT cited.content_id FROM {CONTENTS.name} AS entry"
            f" JOIN {EVIDENCE.name} AS cited ON cited.content_id = entry.content_id"
            f" JOIN {MESSAGES.name} AS said ON said.conversation_id = cited.conversation_id"
            " AND said.message_id = cited.message_id"
            f" WHERE entry.{self._of_memories} AND ?2 IN ('', said.role)"
            " AND ?3 IN ('', coalesce(said.name, said.role))"
        )

    def read_tags(self, table: Table) -> str:
        """The query for the tags of all conversations or entries of memories."""
        return f"SELECT {table.key[0]}, tags FROM {table.name} WHERE {self._of_memories} AND {TAGGED}"

    def read_metadata(self, table: Table) -> str:
        """The query for the metadata of all conversations or entries of memories."""
        return f"SELECT {table.key[0]}, metadata FROM {table.name} WHERE {self._of_memories} AND {DESCRIBED}"


def ids_from(rows: list[Row]) -> frozenset[str]:
    """The ids in the first column."""
    return frozenset(row[0] for row in rows)
