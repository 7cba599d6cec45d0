"""Adds a conversation with its messages, their search records, and the runs that learn from it.

A database whose `WITH` clause may change rows does all of this in one statement, and so in one round trip. It
sees the database as it was when it began: if another transaction changes the same memory meanwhile, the runs
of both get the same number. The statement fails then, and a transaction of several statements does the same.
"""

import json
from collections.abc import Sequence
from functools import cache

from ...sql.scripts import Script, Statement
from ..conversation import Conversation
from . import conversations, memories, runs
from .dialect import Dialect, typed_parameters
from .memories import MemoryRow
from .queue_queries import QueueQueries, make_runs
from .records import OF_MESSAGE
from .schema import CONVERSATIONS, MEMORIES, MESSAGE_RECORDS, MESSAGES, QUEUE, SPOKEN_MESSAGES

Spans = Sequence[tuple[int, int]]
"""The first and the last message index of each run."""

_MOST_MESSAGES = 50  # of a conversation that is added at once: a statement has a limited number of parameters
# The columns of the parameters, in their order. The id of the memory is found or made by the statement.
_OF_MEMORY = memories.MADE
_OF_CONVERSATION = tuple(name for name in conversations.MADE if name != "memory_id")
_OF_MESSAGE = tuple(name for name in conversations.MESSAGE_ROW if name != "memory_id")
_OWNER_KEY = f"?{1 + _OF_MEMORY.index('owner_key')}"
_RUNS, _NOW = f"?{1 + len(_OF_MEMORY)}", f"?{2 + len(_OF_MEMORY)}"
_FIRST_OF_CONVERSATION = 3 + len(_OF_MEMORY)
_FIRST_OF_MESSAGES = _FIRST_OF_CONVERSATION + len(_OF_CONVERSATION)


class RecordingQueries:
    """The statements that record a conversation, in one dialect."""

    def __init__(self, dialect: Dialect, queue: QueueQueries) -> None:
        self.dialect = dialect
        self.queue = queue
        self.find = memories.find_statement(dialect)

    def adds_at_once(self, conversation: Conversation) -> bool:
        """Whether a conversation can be added in one statement."""
        is_short = len(conversation.messages) <= _MOST_MESSAGES
        return self.dialect.changes_in_with and is_short and conversation.memory_id is None


def add(
    queries: RecordingQueries, tenant: str, conversation: Conversation, memory_id: str, spans: Spans, now: str
) -> Script[bool]:
    """Add a conversation and its runs; `False` if it exists already.

    Raises `ConflictError` if another conversation has its id.
    """
    yield from runs.lock_queue(queries.queue, tenant, memory_id)
    if not (yield from conversations.add(tenant, conversation, memory_id, now)):
        return False
    yield from runs.enqueue(queries.queue, tenant, memory_id, conversation.conversation_id, spans, now)
    return True


def add_at_once(
    queries: RecordingQueries, memory: MemoryRow, conversation: Conversation, spans: Spans, now: str
) -> Script[str | None]:
    """Add a conversation, its runs, and its memory if it is new, in one statement; returns its memory.

    `None` if nothing was added: `add` finds out why. Raises `StatementRefusedError` if another
    transaction changes the memory at the same time.
    """
    tenant, conversation_id = memory.tenant, conversation.conversation_id
    made = dict(zip(conversations.MADE, conversations.values_of(tenant, conversation, "", now), strict=True))
    said = conversations.message_rows(tenant, "", conversation_id, conversation.messages)
    values = [
        *memories.values_of(memory),
        json.dumps(runs.new_runs(spans)),
        now,
        *(made[name] for name in _OF_CONVERSATION),
        *(row[name] for row in said for name in _OF_MESSAGE),
    ]
    rows = yield Statement(_statement(queries.dialect, queries.find, len(said)), values, alone=True)
    return str(rows[0][0]) if rows else None


@cache
def _statement(dialect: Dialect, find: str, count: int) -> str:
    """The statement that adds a conversation of so many messages, and returns the id of its memory."""
    conversation_id = f"CAST(?{_FIRST_OF_CONVERSATION} AS VARCHAR)"
    new_runs = make_runs(dialect, _RUNS, "stamped.tenant", "stamped.memory_id", conversation_id, _NOW)
    of_conversation, of_message = ", ".join(_OF_CONVERSATION), ", ".join(_OF_MESSAGE)
    of_given_conversation = typed_parameters(dialect, CONVERSATIONS, _OF_CONVERSATION, _FIRST_OF_CONVERSATION)
    parts = {
        "taken": f"SELECT 1 FROM {CONVERSATIONS.name} WHERE conversation_id = {conversation_id}",
        "memory": find.replace("?1", _OWNER_KEY),
        # Another transaction may have made it, after this statement began: then nothing is added.
        "new": f"INSERT INTO {MEMORIES.name} ({', '.join(_OF_MEMORY)}, next_position, entries_stamp)"
        f" SELECT {typed_parameters(dialect, MEMORIES, _OF_MEMORY, 1)}, 0, CAST(?{len(_OF_MEMORY)} AS BIGINT)"
        " WHERE NOT EXISTS (SELECT 1 FROM memory) AND NOT EXISTS (SELECT 1 FROM taken) ON CONFLICT DO NOTHING"
        " RETURNING memory_id, tenant, turns_stamp",
        "owner": "SELECT memory_id, tenant FROM memory WHERE NOT EXISTS (SELECT 1 FROM taken)"
        " UNION ALL SELECT memory_id, tenant FROM new",
        "enqueued": f"INSERT INTO {QUEUE.name} (memory_id, tenant, available_at)"
        f" SELECT memory_id, tenant, {dialect.now} FROM owner"
        " ON CONFLICT (memory_id) DO UPDATE SET tenant = excluded.tenant RETURNING memory_id",
        "made": f"INSERT INTO {CONVERSATIONS.name} (memory_id, {of_conversation})"
        f" SELECT memory_id, {of_given_conversation}"
        " FROM enqueued ON CONFLICT (conversation_id) DO NOTHING RETURNING memory_id",
        "changed": f"UPDATE {MEMORIES.name} AS known SET turns_stamp = turns_stamp + 1 FROM made"
        " WHERE known.memory_id = made.memory_id RETURNING known.memory_id, known.tenant, known.turns_stamp",
        # An update does not see what the same statement has inserted.
        "stamped": "SELECT * FROM changed UNION ALL SELECT new.* FROM new, made",
        "said": f"INSERT INTO {MESSAGES.name} (memory_id, {of_message}) SELECT stamped.memory_id, given.*"
        f" FROM stamped, (VALUES {_message_values(dialect, count)}) AS given ({of_message})"
        f" RETURNING {OF_MESSAGE}, role",
        "recorded": f"INSERT INTO {MESSAGE_RECORDS.name} ({OF_MESSAGE}, stamp)"
        f" SELECT said.conversation_id, said.tenant, said.memory_id, said.message_id, turns_stamp"
        f" FROM said, stamped WHERE {SPOKEN_MESSAGES}",
        "runs": f"{new_runs}, stamped",
    }
    steps = ", ".join(f"{name} AS ({sql})" for name, sql in parts.items())
    return f"WITH {steps} SELECT memory_id FROM made"


def _message_values(dialect: Dialect, count: int) -> str:
    """The parameters of so many messages. Those of the first one have types, which are those of all."""
    width = len(_OF_MESSAGE)
    starts = range(_FIRST_OF_MESSAGES + width, _FIRST_OF_MESSAGES + count * width, width)
    others = (", ".join(f"?{number}" for number in range(start, start + width)) for start in starts)
    return ", ".join(
        f"({row})" for row in (typed_parameters(dialect, MESSAGES, _OF_MESSAGE, _FIRST_OF_MESSAGES), *others)
    )
