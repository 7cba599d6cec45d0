"""Adds a conversation with its messages, their search records, and the runs that learn from it.

A database whose `WITH` clause may change rows does this in two statements. The first one locks the queue, so
that the second one sees the runs of all transactions before it.
"""

import json
from collections.abc import Sequence
from functools import cache

from ...sql.scripts import Script, Statement
from ..conversation import Conversation
from . import conversations, memories, runs
from .dialect import Dialect
from .records import OF_MESSAGE
from .runs import QueueQueries
from .schema import MEMORIES, MESSAGE_RECORDS, MESSAGES, QUEUE, SPOKEN_MESSAGES

Spans = Sequence[tuple[int, int]]
"""The first and the last message index of each run."""

_MOST_MESSAGES = 50  # of a conversation that is added at once: statements have a limited number of parameters
_OF_CONVERSATION = 13  # parameters
_OF_RUNS = 2


class RecordingQueries:
    """The statements that record a conversation, in one dialect."""

    def __init__(self, dialect: Dialect, queue: QueueQueries) -> None:
        self.dialect = dialect
        self.queue = queue
        self.find = memories.find_statement(dialect)
        self.find_and_enqueue = (
            f"WITH memory AS ({self.find}), enqueued AS (INSERT INTO {QUEUE.name} (memory_id, tenant,"
            f" available_at) SELECT memory_id, CAST(?2 AS VARCHAR), {dialect.now} FROM memory"
            " ON CONFLICT (memory_id) DO UPDATE SET tenant = excluded.tenant) SELECT * FROM memory"
        )


def find_memory(queries: RecordingQueries, row: memories.MemoryRow) -> Script[str]:
    """Find the memory of a conversation or create it, and lock its queue row; returns its id."""
    if queries.dialect.changes_in_with:
        return (yield from memories.find_to_record(row, queries.find_and_enqueue, row.tenant))
    memory_id = yield from memories.find_to_record(row, queries.find)
    yield from runs.lock_queue(queries.queue, row.tenant, memory_id)
    return memory_id


def add(
    queries: RecordingQueries, tenant: str, conversation: Conversation, memory_id: str, spans: Spans, now: str
) -> Script[bool]:
    """Add a conversation and its runs; `False` if it exists already. The queue row must be locked.

    Raises `ConflictError` if another conversation has its id.
    """
    if queries.dialect.changes_in_with and len(conversation.messages) <= _MOST_MESSAGES:
        return (yield from _add_at_once(queries, tenant, conversation, memory_id, spans, now))
    if not (yield from conversations.add(tenant, conversation, memory_id, now)):
        return False
    yield from runs.enqueue(queries.queue, tenant, memory_id, conversation.conversation_id, spans, now)
    return True


def _add_at_once(
    queries: RecordingQueries, tenant: str, conversation: Conversation, memory_id: str, spans: Spans, now: str
) -> Script[bool]:
    said = conversations.message_rows(tenant, memory_id, conversation.conversation_id, conversation.messages)
    values = [
        *conversations.values_of(tenant, conversation, memory_id, now),
        json.dumps(runs.new_runs(spans)),
        now,
        *(value for row in said for value in row.values()),
    ]
    statement = _add_statement(queries.dialect, tuple(said[0]), len(said))
    ((is_new,),) = yield Statement(statement, values)
    if not is_new:
        yield from conversations.check_same(tenant, conversation, memory_id)
    return bool(is_new)


@cache
def _add_statement(dialect: Dialect, columns: tuple[str, ...], count: int) -> str:
    """The statement that adds a conversation of so many messages, unless its id is taken."""
    first = 1 + _OF_CONVERSATION + _OF_RUNS
    width = len(columns)
    rows = [range(start, start + width) for start in range(first, first + count * width, width)]
    given = ", ".join(f"({', '.join(f'?{number}' for number in row)})" for row in rows[1:])
    types = {"message_index": "CAST({} AS BIGINT)", "created_at": dialect.time, "attachments": dialect.json}
    typed = ", ".join(
        types.get(name, "CAST({} AS VARCHAR)").format(f"?{number}")
        for name, number in zip(columns, rows[0], strict=True)
    )
    named = ", ".join(columns)
    made_runs = runs.make_runs(dialect, f"?{_OF_CONVERSATION + 1}", "?2", "?6", "?1", f"?{first - 1}")
    return (
        f"WITH made AS ({conversations.MAKE}),"
        f" changed AS (UPDATE {MEMORIES.name} SET turns_stamp = turns_stamp + 1"
        " WHERE memory_id = ?6 AND EXISTS (SELECT 1 FROM made) RETURNING turns_stamp),"
        f" said AS (INSERT INTO {MESSAGES.name} ({named}) SELECT given.* FROM changed,"
        f" (VALUES ({typed}){', ' if given else ''}{given}) AS given ({named}) RETURNING {OF_MESSAGE}, role),"
        f" recorded AS (INSERT INTO {MESSAGE_RECORDS.name} ({OF_MESSAGE}, stamp)"
        f" SELECT {OF_MESSAGE}, turns_stamp FROM said, changed WHERE {SPOKEN_MESSAGES}),"
        f" queued AS ({made_runs}, changed)"
        " SELECT count(*) FROM made"
    )
