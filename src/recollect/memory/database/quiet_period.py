"""Conversations that go on: what was said waits for a while of quiet, and then gets its runs.

`waiting_from` is the first message that no run was made for, and `learn_at` the time from which one is due.
Whoever makes runs holds the queue first, as everybody does, and then the row of the conversation; whoever
adds messages that are to wait holds the memory and then that row. So nobody waits in a ring, and each message
is given to one run. Nobody waits for more than a day: a time that is later was set by a clock that was fast
and has been set right since, and has come.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ...errors import ConflictError
from ...sql.scripts import Row, Script, Statement
from ..conversation import Message
from . import conversations, memories
from .dialect import Dialect
from .schema import CONVERSATIONS

_LONGEST = 86_400.0  # seconds of quiet
_IMPOSSIBLE = _LONGEST + 60  # seconds from now, until which nothing can be waiting

_OWNED = "conversation_id = ?1 AND tenant = ?2"
OWNER = f"SELECT conversation_id, tenant, memory_id FROM {CONVERSATIONS.name} WHERE {_OWNED}"
ALL_IN_RUNS = (
    f"UPDATE {CONVERSATIONS.name} SET learn_at = NULL, waiting_from = NULL WHERE conversation_id = ?1"
)
_OPEN = " AND closed_at IS NULL"
CLOSE = f"UPDATE {CONVERSATIONS.name} SET closed_at = ?2 WHERE conversation_id = ?1{_OPEN}"


class Due(NamedTuple):
    """A conversation that has been quiet for long enough."""

    conversation_id: str
    tenant: str
    memory_id: str


class QuietQueries:
    """The statements in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        name, now = CONVERSATIONS.name, dialect.now
        due, impossible = _times(now)
        self.due = tuple(_due(when, "tenant = ?1") for when in (due, impossible))
        anybody = "CAST(?1 AS VARCHAR) IS NULL"
        self.due_anywhere = tuple(_due(when, anybody) for when in (due, impossible))
        held = f"SELECT waiting_from FROM {name} WHERE {_OWNED}"
        self.hold = f"{held}{dialect.lock}"
        self.hold_if_due = f"{held} AND {due_at(now)}{dialect.lock}"
        place = "next_index = next_index + ?3, updated_at = ?4"
        at_open = f"WHERE {_OWNED}{_OPEN} RETURNING next_index"
        # Whoever appends takes the row, so that indexes have no gaps and no doubles.
        self.append = f"UPDATE {name} SET {place}, learn_at = NULL {at_open}, waiting_from"
        self.append_and_wait = (
            f"UPDATE {name} SET {place}, learn_at = {now} + ?5,"
            f" waiting_from = coalesce(waiting_from, next_index) {at_open}, waiting_from"
        )


def due_at(now: str) -> str:
    """Whether a run of a conversation is due."""
    return f"({' OR '.join(_times(now))})"


def _times(now: str) -> tuple[str, str]:
    return f"learn_at <= {now}", f"learn_at > {now} + {_IMPOSSIBLE}"


def _due(when: str, whose: str) -> str:
    return (
        f"SELECT conversation_id, tenant, memory_id FROM {CONVERSATIONS.name} WHERE {when} AND {whose}"
        " ORDER BY learn_at LIMIT ?2"
    )


def due_from(rows: Sequence[Row]) -> list[Due]:
    """The conversations that rows name."""
    return [Due(*row) for row in rows]


def append(
    queries: QuietQueries,
    owner: Due,
    messages: Sequence[Message],
    now: str,
    learn_after: float | None,
    even_if_closed: bool = False,
) -> Script[tuple[list[Message], int | None]]:
    """Add messages after those that are there, and return them with their places, and what waits before them.

    The memory must be held, and the queue too unless they are to wait.
    """
    key = (owner.conversation_id, owner.tenant, len(messages), now)
    sql = queries.append if learn_after is None else queries.append_and_wait
    waiting = () if learn_after is None else (min(learn_after, _LONGEST),)
    rows = yield Statement(sql.replace(_OPEN, "") if even_if_closed else sql, (*key, *waiting))
    if not rows:
        raise ConflictError("the conversation is closed, or it is not there any more")
    first = int(rows[0][0]) - len(messages)
    placed = [replace(each, message_index=first + place) for place, each in enumerate(messages)]
    yield from conversations.add_messages(owner.tenant, owner.memory_id, owner.conversation_id, placed)
    return placed, rows[0][1]


def hold_memory(owner: Due) -> Script[None]:
    """Keep others from changing a memory, and tell holders of copies that its turns have changed."""
    rows = yield Statement(memories.TURNS_CHANGED, (owner.memory_id,))
    if not rows:
        raise ConflictError("there is no conversation with this conversation_id")
