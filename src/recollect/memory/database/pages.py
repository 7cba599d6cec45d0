"""Pages of conversations and memories, told without all that they hold.

A page costs as much as what is on it, wherever it stands: each order is that of an index.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from ...errors import InvalidValueError
from ...sql.columns import StoredTime, check_id, text_to_column, time_as_text, time_to_column
from ...sql.scripts import LongQuery, Row
from ..times import read_time
from . import conversations
from .conversations import COLUMNS
from .corruption import readable, stored_id, stored_text
from .dialect import Dialect
from .schema import CONTENTS, CONVERSATIONS, MEMORIES, MESSAGES

_BETWEEN = "/"  # a time has none
_LISTED = f"SELECT {conversations.COLUMNS} FROM {CONVERSATIONS.name} WHERE"
_ORDER = "ORDER BY created_at DESC, conversation_id DESC"


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
    return f"{_LISTED} {within} {_ORDER} LIMIT ?{next_}", key


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


Scope: TypeAlias = Literal["tenant", "owner", "user"]

LOOKED_THROUGH = 10_000
"""Conversations that one page looks through at most."""

READ_THROUGH = 100_000
"""Messages after which a page begins with no other conversation."""

_BEFORE_EDGE = "(created_at, conversation_id) < (?{}, ?{})"
_SCOPES = {
    "tenant": "tenant = ?1",
    "owner": f"memory_id = (SELECT memory_id FROM {MEMORIES.name} WHERE owner_key = ?1)",
    "user": f"memory_id IN (SELECT memory_id FROM {MEMORIES.name} WHERE user_key = ?1)",
}
_NAMED_BY = ("conversation_id", "session_id", "user_id", "agent_id")


@dataclass(frozen=True)
class Wanted:
    """What is looked for: conversations of a tenant, of an agent and a user, or of a user with any agent."""

    scope: Scope
    key: str
    """By which that is found."""
    edge: Edge | None = None
    agent_id: str | None = None
    session_id: str | None = None
    words: str | None = None
    look_through: int = LOOKED_THROUGH
    read_through: int = READ_THROUGH


def statement_for(dialect: Dialect, wanted: Wanted, limit: int) -> tuple[str, tuple[Any, ...]]:
    """The statement that finds a page, and its parameters."""
    near, parameters = _near(wanted)
    conditions = [] if wanted.words is None else [f"said_up_to - said_here < {wanted.read_through}"]
    for name in ("agent_id", "session_id"):
        given = getattr(wanted, name)
        if given is not None:
            parameters += (given,)
            conditions.append(f"{name} = ?{len(parameters)}")
    if wanted.words is not None:
        parameters += (pattern_of(wanted.words),)
        conditions.append(_holding(dialect, f"?{len(parameters)}"))
    parameters += (limit,)
    matching = (
        f"SELECT conversation_id FROM ({near}) AS near"
        f" WHERE {' AND '.join(conditions) or 'TRUE'} {_ORDER} LIMIT ?{len(parameters)}"
    )
    found = f"SELECT {COLUMNS} FROM {CONVERSATIONS.name} WHERE conversation_id IN ({matching}) {_ORDER}"
    return LongQuery(found) if conditions else found, parameters


def last_looked_at(wanted: Wanted) -> tuple[str, tuple[Any, ...]]:
    """The statement that tells where a page stopped to look, if it did not come to the end of all."""
    near, parameters = _near(wanted)
    if wanted.words is None:
        last = f"{_ORDER} LIMIT 1 OFFSET {wanted.look_through - 1}"
    else:
        is_last = f"place = {wanted.look_through} OR said_up_to >= {wanted.read_through}"
        last = f"WHERE {is_last} {_ORDER} LIMIT 1"
    return LongQuery(f"SELECT * FROM ({near}) AS near {last}"), parameters


def _near(wanted: Wanted) -> tuple[str, tuple[Any, ...]]:
    """The conversations that a page looks through at most; for words, with how much was said up to each."""
    within, edge = _SCOPES[wanted.scope], wanted.edge or ()
    if edge:
        within += f" AND {_BEFORE_EDGE.format(2, 3)}"
    # No conversation counts for more than a page: numbers that were imported must not overflow the sum.
    most = wanted.read_through
    said = f"CASE WHEN next_index > {most} THEN {most} ELSE next_index END AS said_here"
    columns = f"created_at, conversation_id, session_id, user_id, agent_id, {said}"
    near = f"SELECT {columns} FROM {CONVERSATIONS.name} WHERE {within} {_ORDER} LIMIT {wanted.look_through}"
    if wanted.words is not None:
        up_to = f"OVER ({_ORDER} ROWS UNBOUNDED PRECEDING)"
        numbers = f"row_number() {up_to} AS place, sum(said_here) {up_to} AS said_up_to"
        near = f"SELECT near.*, {numbers} FROM ({near}) AS near"
    return near, (wanted.key, *edge)


def _holding(dialect: Dialect, pattern: str) -> str:
    said = (
        f"EXISTS (SELECT 1 FROM {MESSAGES.name} AS said WHERE said.conversation_id = near.conversation_id"
        f" AND {dialect.holds.format('said.content', pattern)})"
    )
    return f"({' OR '.join(dialect.holds.format(name, pattern) for name in _NAMED_BY)} OR {said})"


def pattern_of(words: str) -> str:
    """The pattern of texts that hold words as they stand."""
    escaped = text_to_column(words)
    for special in "!%_":
        escaped = escaped.replace(special, f"!{special}")
    small = str.maketrans({chr(each): chr(each + 32) for each in range(ord("A"), ord("Z") + 1)})
    return f"%{escaped.translate(small)}%"
