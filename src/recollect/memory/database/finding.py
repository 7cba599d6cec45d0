"""Conversations that hold some words, or are of one user or one agent, from the newest on.

No index knows words, so a page looks through so many conversations and no more, and for words through so
many messages: what it costs does not grow with all that there are, but for a single conversation that is
longer, which is looked through whole. Where a page has looked to the end of that without filling, it says
where to go on.
"""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ...sql.columns import text_to_column
from ...sql.scripts import LongQuery
from .conversations import COLUMNS
from .dialect import Dialect
from .outlines import Edge
from .schema import CONVERSATIONS, MEMORIES, MESSAGES

Scope: TypeAlias = Literal["tenant", "owner", "user"]

LOOKED_THROUGH = 10_000
"""Conversations that one page looks through at most."""

READ_THROUGH = 100_000
"""Messages after which a page begins with no other conversation."""

_ORDER = "ORDER BY created_at DESC, conversation_id DESC"
_BEFORE_EDGE = "(created_at, conversation_id) < (?{}, ?{})"
_SCOPES = {
    "tenant": "tenant = ?1",
    "owner": f"memory_id = (SELECT memory_id FROM {MEMORIES.name} WHERE owner_key = ?1)",
    "user": f"memory_id IN (SELECT memory_id FROM {MEMORIES.name} WHERE user_key = ?1)",
}
_NAMES = ("conversation_id", "session_id", "user_id", "agent_id")


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
    return f"({' OR '.join(dialect.holds.format(name, pattern) for name in _NAMES)} OR {said})"


def pattern_of(words: str) -> str:
    """The pattern of texts that hold words as they stand."""
    escaped = text_to_column(words)
    for special in "!%_":
        escaped = escaped.replace(special, f"!{special}")
    small = str.maketrans({chr(each): chr(each + 32) for each in range(ord("A"), ord("Z") + 1)})
    return f"%{escaped.translate(small)}%"
