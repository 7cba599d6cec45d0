"""Pages of conversations, from the newest on, and counts for the outlines of conversations and memories.

Each order is that of an index: the cost of a page does not depend on where it is. There is no index of words,
so a search for words scans a bounded number of conversations and messages per page. A conversation that is
longer than the bound is scanned as a whole. A page that ends at the bound returns the position to go on from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from ...errors import InvalidValueError
from ...sql.columns import StoredTime, check_id, text_to_column, time_as_text, time_to_column
from ...sql.scripts import LongQuery, Row
from ..operations.lists import MAX_CONVERSATIONS
from ..times import read_time
from . import conversations
from .conversations import COLUMNS
from .corruption import readable, stored_id, stored_text
from .dialect import Dialect
from .schema import CONTENTS, CONVERSATIONS, MEMORIES, MESSAGES

_SEPARATOR = "/"  # does not occur in a time
_LISTED = f"SELECT {conversations.COLUMNS} FROM {CONVERSATIONS.name} WHERE"
_ORDER = "ORDER BY created_at DESC, conversation_id DESC"


class Edge(NamedTuple):
    """Where a page begins: after this conversation, which need not exist any more."""

    created_at: StoredTime
    conversation_id: str


def page_of(
    scope: str, *, is_memory: bool, session_id: str | None, has_edge: bool = True
) -> tuple[str, tuple[str, ...]]:
    """The statement for a page of the conversations of a tenant or a memory, and its first parameters.

    They are followed by the edge, if there is one, and the length of the page. The first page has no edge:
    no text comes after all others in every collation.
    """
    column = "memory_id" if is_memory else "tenant"
    key = (scope,) if session_id is None else (scope, session_id)
    # The expression on the column leaves only the index of sessions, which is the fastest.
    within = f"{column} = ?1" if session_id is None else f"({column} || '') = ?1 AND session_id = ?2"
    next_ = len(key) + 1
    if has_edge:
        within += f" AND (created_at, conversation_id) < (?{next_}, ?{next_ + 1})"
        next_ += len(Edge._fields)
    return f"{_LISTED} {within} {_ORDER} LIMIT ?{next_}", key


class OutlineQueries:
    """The statements about many conversations or memories at once, in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        ids = dialect.each.format("?1")
        # As subqueries they use the index of messages, also where the planner has no statistics for a join.
        said = f"FROM {MESSAGES.name} WHERE conversation_id = wanted.value"
        self.counts_and_first_words = (
            f"SELECT wanted.value, (SELECT count(*) {said}), (SELECT content {said} AND role = 'user'"
            f" ORDER BY message_index LIMIT 1) FROM {ids} AS wanted"
        )
        self.entry_counts = (
            f"SELECT memory_id, content_type, count(*) FROM {CONTENTS.name} WHERE memory_id IN {ids}"
            " AND retired_at IS NULL AND (expires_at IS NULL OR expires_at > ?2)"
            " GROUP BY memory_id, content_type"
        )


def edge_of(row: Row) -> Edge:
    """The edge of the page after a row."""
    found = conversations.ConversationRow(*row)
    return Edge(found.created_at, found.conversation_id)


def format_position(row: conversations.ConversationRow) -> str:
    """The position of a conversation as a text, for the page after it."""
    return f"{time_as_text(row.created_at)}{_SEPARATOR}{row.conversation_id}"


def parse_position(given: str | None) -> Edge | None:
    """The edge at a position; `None` without one. Raises `InvalidValueError` for any other text."""
    if given is None:
        return None
    created_at, _, conversation_id = check_id("before", given).partition(_SEPARATOR)
    try:
        time = read_time("before", created_at)
    except ValueError:
        time = None
    if time is None or not conversation_id:
        raise InvalidValueError("before must be the position of a conversation")
    return Edge(time_to_column(time), conversation_id)


def position_from(rows: Sequence[Row]) -> str | None:
    """The position in the first row, which begins with time and id; `None` without rows."""
    return f"{time_as_text(rows[0][0])}{_SEPARATOR}{rows[0][1]}" if rows else None


def counts_and_words_from(rows: Sequence[Row]) -> tuple[dict[str, int], dict[str, str]]:
    """The number of messages and the first message of the user, by the ids of conversations."""
    counts = {conversation_id: count for conversation_id, count, _ in rows}
    said = [(conversation_id, words) for conversation_id, _, words in rows if words is not None]
    return counts, dict(readable(MESSAGES.name, said, lambda row: (stored_id(row[0]), stored_text(row[1]))))


def entry_counts_from(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """The number of current entries by type, by the ids of memories."""
    found: dict[str, dict[str, int]] = {}
    for memory_id, content_type, count in rows:
        found.setdefault(memory_id, {})[content_type] = count
    return found


Scope: TypeAlias = Literal["tenant", "owner", "user"]

MAX_MESSAGES = 100_000
"""After this many messages, a page scans no further conversation."""

_BEFORE_EDGE = "(created_at, conversation_id) < (?{}, ?{})"
_SCOPES = {
    "tenant": "tenant = ?1",
    "owner": f"memory_id = (SELECT memory_id FROM {MEMORIES.name} WHERE owner_key = ?1)",
    "user": f"memory_id IN (SELECT memory_id FROM {MEMORIES.name} WHERE user_key = ?1)",
}
_NAMED_BY = ("conversation_id", "session_id", "user_id", "agent_id")


@dataclass(frozen=True)
class ConversationSearch:
    """A search for conversations of a tenant, of an agent and a user, or of a user with any agent."""

    scope: Scope
    key: str
    """The tenant, `owner_key` or `user_key`."""
    edge: Edge | None = None
    agent_id: str | None = None
    session_id: str | None = None
    words: str | None = None
    max_conversations: int = MAX_CONVERSATIONS
    max_messages: int = MAX_MESSAGES


def statement_for(dialect: Dialect, search: ConversationSearch, limit: int) -> tuple[str, tuple[Any, ...]]:
    """The statement for a page of results, and its parameters."""
    near, parameters = _near(search)
    conditions = [] if search.words is None else [f"said_up_to - said_here < {search.max_messages}"]
    for name in ("agent_id", "session_id"):
        given = getattr(search, name)
        if given is not None:
            parameters += (given,)
            conditions.append(f"{name} = ?{len(parameters)}")
    if search.words is not None:
        parameters += (pattern_of(search.words),)
        conditions.append(_holding(dialect, f"?{len(parameters)}"))
    parameters += (limit,)
    matching = (
        f"SELECT conversation_id FROM ({near}) AS near"
        f" WHERE {' AND '.join(conditions) or 'TRUE'} {_ORDER} LIMIT ?{len(parameters)}"
    )
    found = f"SELECT {COLUMNS} FROM {CONVERSATIONS.name} WHERE conversation_id IN ({matching}) {_ORDER}"
    return LongQuery(found) if conditions else found, parameters


def last_scanned(search: ConversationSearch) -> tuple[str, tuple[Any, ...]]:
    """The statement for the conversation at which a page stopped at its bound, if it did."""
    near, parameters = _near(search)
    if search.words is None:
        last = f"{_ORDER} LIMIT 1 OFFSET {search.max_conversations - 1}"
    else:
        is_last = f"place = {search.max_conversations} OR said_up_to >= {search.max_messages}"
        last = f"WHERE {is_last} {_ORDER} LIMIT 1"
    return LongQuery(f"SELECT * FROM ({near}) AS near {last}"), parameters


def _near(search: ConversationSearch) -> tuple[str, tuple[Any, ...]]:
    """The conversations that a page scans at most; for words, with the number of messages up to each."""
    within, edge = _SCOPES[search.scope], search.edge or ()
    if edge:
        within += f" AND {_BEFORE_EDGE.format(2, 3)}"
    # Each counts at most as much as a page: imported numbers must not overflow the sum.
    most = search.max_messages
    said = f"CASE WHEN next_index > {most} THEN {most} ELSE next_index END AS said_here"
    columns = f"created_at, conversation_id, session_id, user_id, agent_id, {said}"
    near = (
        f"SELECT {columns} FROM {CONVERSATIONS.name} WHERE {within} {_ORDER} LIMIT {search.max_conversations}"
    )
    if search.words is not None:
        up_to = f"OVER ({_ORDER} ROWS UNBOUNDED PRECEDING)"
        numbers = f"row_number() {up_to} AS place, sum(said_here) {up_to} AS said_up_to"
        near = f"SELECT near.*, {numbers} FROM ({near}) AS near"
    return near, (search.key, *edge)


def _holding(dialect: Dialect, pattern: str) -> str:
    said = (
        f"EXISTS (SELECT 1 FROM {MESSAGES.name} AS said WHERE said.conversation_id = near.conversation_id"
        f" AND {dialect.holds.format('said.content', pattern)})"
    )
    return f"({' OR '.join(dialect.holds.format(name, pattern) for name in _NAMED_BY)} OR {said})"


def pattern_of(words: str) -> str:
    """The LIKE pattern of texts that contain words literally."""
    escaped = text_to_column(words)
    for special in "!%_":
        escaped = escaped.replace(special, f"!{special}")
    small = str.maketrans({chr(each): chr(each + 32) for each in range(ord("A"), ord("Z") + 1)})
    return f"%{escaped.translate(small)}%"
