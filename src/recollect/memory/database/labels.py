"""Finds conversations and entries by their tags and metadata, and entries by who said their evidence.

A filter reads the labels of one memory at a time. Values are compared in Python: SQLite and PostgreSQL then
agree on what is equal, and a corrupt label does not stop a search.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...sql.description import Table
from ...sql.scripts import Row
from ..tags import tags_from_column
from .corruption import stored_object, value_or
from .dialect import Dialect
from .schema import CONTENTS, CONVERSATIONS, EVIDENCE, LABELLED, MESSAGES


class Labels(NamedTuple):
    """The tags and the metadata of a conversation or an entry."""

    id: str
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]


def _labels_of(table: Table) -> str:
    return f"SELECT {table.key[0]}, tags, metadata FROM {table.name} WHERE memory_id = ?1 AND ({LABELLED})"


OF_CONVERSATIONS = _labels_of(CONVERSATIONS)
OF_ENTRIES = _labels_of(CONTENTS)


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


def conversation_labels_from(rows: list[Row]) -> list[Labels]:
    """The labels of conversations. A corrupt label counts as absent."""
    return [_labels_from(CONVERSATIONS.name, row) for row in rows]


def entry_labels_from(rows: list[Row]) -> list[Labels]:
    """The labels of entries. A corrupt label counts as absent."""
    return [_labels_from(CONTENTS.name, row) for row in rows]


def _labels_from(table: str, row: Row) -> Labels:
    row_id, tags, metadata = row
    return Labels(
        row_id,
        value_or(table, row_id, tags_from_column, tags, ()),
        {} if metadata is None else value_or(table, row_id, stored_object, metadata, {}),
    )


def ids_from(rows: list[Row]) -> set[str]:
    """The ids in the first column."""
    return {row[0] for row in rows}
