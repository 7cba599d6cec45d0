"""Pages of conversations and memories, told without all that they hold.

A page costs as much as what is on it, wherever it stands: each order is that of an index.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ...errors import InvalidValueError
from ...sql.columns import StoredTime, check_id, time_as_text, time_to_column
from ...sql.scripts import Row
from ..times import read_time
from . import conversations
from .corrupt import readable, stored_id, stored_text
from .dialect import Dialect
from .schema import CONTENTS, CONVERSATIONS, MESSAGES

_BETWEEN = "/"  # a time has none
_LISTED = f"SELECT {conversations.COLUMNS} FROM {CONVERSATIONS.name} WHERE"
_ORDER = "ORDER BY created_at DESC, conversation_id DESC LIMIT"


class Edge(NamedTuple):
    """Where a page of conversations begins: after the one that is named, which need not be there any more."""

    created_at: StoredTime
    conversation_id: str


def page_of(
    scope: str, *, is_memory: bool, session_id: str | None, has_edge: bool = True
) -> tuple[str, tuple[str, ...]]:
    """The statement for a page of a tenant's or a memory's conversations, and its first parameters.

    The edge, if there is one, and the length of the page come after those. No text stands for the end: which
    comes after all others is another in each collation.
    """
    column = "memory_id" if is_memory else "tenant"
    key = (scope,) if session_id is None else (scope, session_id)
    # The session in words that its index alone knows: it is the shortest way.
    within = f"{column} = ?1" if session_id is None else f"({column} || '') = ?1 AND session_id = ?2"
    next_ = len(key) + 1
    if has_edge:
        within += f" AND (created_at, conversation_id) < (?{next_}, ?{next_ + 1})"
        next_ += len(Edge._fields)
    return f"{_LISTED} {within} {_ORDER} ?{next_}", key


class OutlineQueries:
    """The statements that tell of many at once, in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        ids = dialect.each.format("?1")
        self.counts = (
            f"SELECT conversation_id, count(*) FROM {MESSAGES.name} WHERE conversation_id IN {ids}"
            " GROUP BY conversation_id"
        )
        first = (
            f"SELECT message_index FROM {MESSAGES.name} WHERE conversation_id = wanted.value"
            " AND role = 'user' ORDER BY message_index LIMIT 1"
        )
        self.first_words = (
            f"SELECT said.conversation_id, said.content FROM {ids} AS wanted JOIN {MESSAGES.name} AS said"
            f" ON said.conversation_id = wanted.value AND said.message_index = ({first})"
        )
        self.entry_counts = (
            f"SELECT memory_id, content_type, count(*) FROM {CONTENTS.name} WHERE memory_id IN {ids}"
            " AND retired_at IS NULL GROUP BY memory_id, content_type"
        )


def edge_of(row: Row) -> Edge:
    """Where the page after a row goes on."""
    found = conversations.ConversationRow(*row)
    return Edge(found.created_at, found.conversation_id)


def tell_position(row: conversations.ConversationRow) -> str:
    """Where a conversation stands among others, for the page after it."""
    return f"{time_as_text(row.created_at)}{_BETWEEN}{row.conversation_id}"


def read_position(given: str | None) -> Edge | None:
    """The edge that a position names; `None` if none is given."""
    if given is None:
        return None
    created_at, _, conversation_id = check_id("before", given).partition(_BETWEEN)
    try:
        time = read_time("before", created_at)
    except ValueError:
        time = None
    if time is None or not conversation_id:
        raise InvalidValueError("before must be the position of a conversation")
    return Edge(time_to_column(time), conversation_id)


def position_from(rows: Sequence[Row]) -> str | None:
    """The position of the conversation that a row begins with the time and the id of; `None` without one."""
    return f"{time_as_text(rows[0][0])}{_BETWEEN}{rows[0][1]}" if rows else None


def counts_from(rows: Sequence[Row]) -> dict[str, int]:
    """How many messages there are, by the ids of conversations."""
    return dict(map(tuple, rows))


def words_from(rows: Sequence[Row]) -> dict[str, str]:
    """The first words of users, by the ids of conversations."""
    return dict(readable(MESSAGES.name, rows, lambda row: (stored_id(row[0]), stored_text(row[1]))))


def entry_counts_from(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """How many entries are told of each type, by the ids of memories."""
    found: dict[str, dict[str, int]] = {}
    for memory_id, content_type, count in rows:
        found.setdefault(memory_id, {})[content_type] = count
    return found
