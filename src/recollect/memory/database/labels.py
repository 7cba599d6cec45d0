"""Finds conversations and entries by their tags and metadata, and entries by who said their evidence.

A filter reads the labels of one memory at a time. Values are compared in Python: SQLite and PostgreSQL then
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
from .schema import CONTENTS, DESCRIBED, EVIDENCE, MESSAGES, TAGGED


@dataclass(frozen=True)
class LabelMatches:
    """The conversations or entries that have all wanted tags or all wanted metadata."""

    ids: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()
    """Those of the wanted tags or keys that at least one conversation or entry has."""

    def __or__(self, other: "LabelMatches") -> "LabelMatches":
        return LabelMatches(self.ids | other.ids, self.known | other.known)


def read_tags(table: Table) -> str:
    """The query for the tags of all conversations or entries of a memory."""
    return f"SELECT {table.key[0]}, tags FROM {table.name} WHERE memory_id = ?1 AND {TAGGED}"


def read_metadata(table: Table) -> str:
    """The query for the metadata of all conversations or entries of a memory."""
    return f"SELECT {table.key[0]}, metadata FROM {table.name} WHERE memory_id = ?1 AND {DESCRIBED}"


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
    """The statements that find entries by their evidence, in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
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
            " WHERE entry.memory_id = ?1 AND ?2 IN ('', said.role)"
            " AND ?3 IN ('', coalesce(said.name, said.role))"
        )


def ids_from(rows: list[Row]) -> frozenset[str]:
    """The ids in the first column."""
    return frozenset(row[0] for row in rows)
