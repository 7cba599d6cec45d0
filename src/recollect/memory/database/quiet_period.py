"""Open conversations: messages wait until the conversation has been quiet for a while, and then get runs.

`waiting_from` is the index of the first message without a run, and `learn_at` the time at which a run is due.

Lock order: a transaction that creates runs locks the queue row, then the conversation. A transaction that
appends messages which are to wait locks the memory, then the conversation. So no two transactions wait for
each other, and each message gets exactly one run.

Imported messages wait in the backlog: their `learn_at` is `BACKLOG` plus their own time. They are due when
nothing else is, the oldest first, one conversation of a memory at a time.

Clocks: no quiet period is longer than a day. A later `learn_at` was written by a clock that ran fast: the
conversation is due at once.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ...errors import ConflictError
from ...sql.scripts import Row, Script, Statement
from ..conversation import Message
from . import conversations, memories
from .dialect import Dialect
from .schema import CONVERSATIONS, QUEUE

_LONGEST = 86_400.0  # seconds of quiet
_IMPOSSIBLE = _LONGEST + 60  # seconds from now: no right clock has set a later time

BACKLOG = 1e12
"""In seconds since 1970, more than any clock shows."""

_OWNED = "conversation_id = ?1 AND tenant = ?2"
OWNER = f"SELECT conversation_id, tenant, memory_id FROM {CONVERSATIONS.name} WHERE {_OWNED}"
ALL_IN_RUNS = (
    f"UPDATE {CONVERSATIONS.name} SET learn_at = NULL, waiting_from = NULL WHERE conversation_id = ?1"
)
_OPEN = " AND closed_at IS NULL"
CLOSE = f"UPDATE {CONVERSATIONS.name} SET closed_at = ?2 WHERE conversation_id = ?1{_OPEN}"


class Due(NamedTuple):
    """A conversation whose quiet period is over, with its owner."""

    conversation_id: str
    tenant: str
    memory_id: str


class QuietQueries:
    """The statements in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        name, now = CONVERSATIONS.name, dialect.now
        due, impossible = _times(now)
        impossible += f" AND learn_at < {BACKLOG}"
        self.due = tuple(_due(when, "tenant = ?1") for when in (due, impossible))
        any_tenant = "CAST(?1 AS VARCHAR) IS NULL"
        self.due_anywhere = tuple(_due(when, any_tenant) for when in (due, impossible))
        # One conversation of a memory at a time: what is said meanwhile need not wait for all the others.
        queued = f"SELECT 1 FROM {QUEUE.name} AS queued WHERE queued.memory_id = {name}.memory_id"
        in_backlog = f"learn_at >= {BACKLOG} AND NOT EXISTS ({queued})"
        self.backlog = _due(in_backlog, "tenant = ?1")
        self.backlog_anywhere = _due(in_backlog, any_tenant)
        self.any_backlog = _due(f"learn_at >= {BACKLOG}", "tenant = ?1")
        self.any_backlog_anywhere = _due(f"learn_at >= {BACKLOG}", any_tenant)
        live = f"SELECT 1 FROM {QUEUE.name} WHERE {{}} AND available_at <= {now} LIMIT 1"
        self.live = live.format("tenant = ?1")
        self.live_anywhere = live.format(any_tenant)
        waiting = f"SELECT waiting_from FROM {name} WHERE {_OWNED}"
        self.lock = f"{waiting}{dialect.lock}"
        self.lock_if_due = f"{waiting} AND {due_at(now)}{dialect.lock}"
        place = "next_index = next_index + ?3, updated_at = ?4"
        at_open = f"WHERE {_OWNED}{_OPEN} RETURNING next_index"
        # The update locks the row: message indexes get neither gaps nor duplicates.
        self.append = f"UPDATE {name} SET {place}, learn_at = NULL {at_open}, waiting_from"
        self.append_and_wait = (
            f"UPDATE {name} SET {place}, learn_at = {now} + ?5,"
            f" waiting_from = coalesce(waiting_from, next_index) {at_open}, waiting_from"
        )
        self.append_only = (
            f"UPDATE {name} SET {place}, waiting_from = coalesce(waiting_from, next_index)"
            f" {at_open}, waiting_from"
        )


def due_at(now: str) -> str:
    """The condition for conversations that are due."""
    return f"({' OR '.join(_times(now))})"


def _times(now: str) -> tuple[str, str]:
    return f"learn_at <= {now}", f"learn_at > {now} + {_IMPOSSIBLE}"


def _due(when: str, whose: str) -> str:
    return (
        f"SELECT conversation_id, tenant, memory_id FROM {CONVERSATIONS.name} WHERE {when} AND {whose}"
        " ORDER BY learn_at LIMIT ?2"
    )


def due_from(rows: Sequence[Row]) -> list[Due]:
    """The conversations in rows."""
    return [Due(*row) for row in rows]


def append(
    queries: QuietQueries,
    owner: Due,
    messages: Sequence[Message],
    now: str,
    learn_after: float | None,
    even_if_closed: bool = False,
) -> Script[tuple[list[Message], int | None]]:
    """Append messages; returns them with their indexes, and the index of the first waiting message.

    The memory must be locked, and the queue row too unless the messages are to wait. Raises `ConflictError`
    if the conversation is closed or does not exist.
    """
    key = (owner.conversation_id, owner.tenant, len(messages), now)
    sql = queries.append
    waiting: tuple[float, ...] = ()
    if learn_after == math.inf:
        sql = queries.append_only
    elif learn_after is not None:
        sql, waiting = queries.append_and_wait, (min(learn_after, _LONGEST),)
    rows = yield Statement(sql.replace(_OPEN, "") if even_if_closed else sql, (*key, *waiting))
    if not rows:
        raise ConflictError("the conversation is closed, or it no longer exists")
    first = int(rows[0][0]) - len(messages)
    placed = [replace(each, message_index=first + place) for place, each in enumerate(messages)]
    yield from conversations.add_messages(owner.tenant, owner.memory_id, owner.conversation_id, placed)
    return placed, rows[0][1]


def lock_memory(owner: Due) -> Script[None]:
    """Lock a memory, and change its stamp: caches of its messages become stale."""
    rows = yield Statement(memories.TURNS_CHANGED, (owner.memory_id,))
    if not rows:
        raise ConflictError("there is no conversation with this conversation_id")
