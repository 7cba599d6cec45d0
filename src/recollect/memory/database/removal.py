"""Removing rows for good: entries, what was learned from messages, and all that a memory holds."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import TransientError
from ...sql.columns import text_to_column
from ...sql.scripts import Row, Script, Statement
from ..rights import quotes
from ..rights.consequences import Group, Held, Succession
from ..rights.quotes import AnswerQueries, Looked
from . import entries
from .corruption import stored_text, value_or
from .dialect import Dialect
from .schema import (
    CONTENTS,
    CONVERSATIONS,
    EVIDENCE,
    FAILURES,
    MEMORIES,
    MESSAGES,
    QUEUE,
    RUNS,
    STAGES,
    TERMS,
)

_HELD = "content_id, position, content_text, run_id, valid_from, valid_to, retired_at, superseded_by"
_CITED = "conversation_id = ?1 AND (CAST(?2 AS VARCHAR) IS NULL OR message_id = ?2)"
_NOTHING = Looked()

# Of a memory whose rows are counted by the ids of memories.
COUNTED = {
    "memories": MEMORIES.name,
    "entries": CONTENTS.name,
    "index_rows": TERMS.name,
    "conversations": CONVERSATIONS.name,
    "runs": RUNS.name,
    "queued": QUEUE.name,
}
# Of rows that hang on others: the table, that of the parent, and the column that they share.
COUNTED_BENEATH = {
    "evidence": (EVIDENCE.name, CONTENTS.name, "content_id"),
    "messages": (MESSAGES.name, CONVERSATIONS.name, "conversation_id"),
    "stages": (STAGES.name, RUNS.name, "run_id"),
    "failures": (FAILURES.name, RUNS.name, "run_id"),
}
# What goes with the knowledge of a memory, its conversations aside.
OF_KNOWLEDGE = (QUEUE.name, RUNS.name, TERMS.name, CONTENTS.name)


class OvertakenError(TransientError):
    """Others are at it, and must be let go first: nothing was written, and all is to begin anew."""


class RemovalQueries:
    """The statements that remove entries, in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        ids = dialect.each.format("?1")
        self.with_precursors = (
            f"WITH RECURSIVE gone(content_id) AS (SELECT value FROM {ids} AS given"
            f" UNION SELECT held.content_id FROM {CONTENTS.name} held JOIN gone"
            " ON held.superseded_by = gone.content_id)"
            f" SELECT content_id, content_text FROM {CONTENTS.name} WHERE memory_id = ?2"
            " AND content_id IN (SELECT content_id FROM gone)"
        )
        self.contents = (
            f"DELETE FROM {CONTENTS.name} WHERE memory_id = ?2 AND content_id IN {ids} RETURNING position"
        )
        self.terms = (
            f"DELETE FROM {TERMS.name} WHERE memory_id = ?2"
            f" AND position IN (SELECT CAST(value AS BIGINT) FROM {ids} AS given)"
        )
        self.answers = AnswerQueries(dialect)
        self._say_learned(ids)
        self._say_whole(ids)
        self._say_held(dialect, ids)

    def _say_held(self, dialect: Dialect, ids: str) -> None:
        """Keeping others from memories."""
        self.queued = f"SELECT memory_id FROM {QUEUE.name} WHERE memory_id IN {ids} ORDER BY memory_id"
        self.hold_queued = f"{self.queued}{dialect.lock}"
        self.there = f"SELECT memory_id FROM {MEMORIES.name} WHERE memory_id IN {ids} ORDER BY memory_id"
        self.hold_memories = f"{self.there}{dialect.skip_locked}"
        self.share_memories = f"{self.there}{dialect.share}"
        # Whoever works on the memory has lost it from here on, and whoever wants to waits.
        self.interrupt = (
            f"UPDATE {QUEUE.name} SET lease = NULL, available_at ="
            f" CASE WHEN lease IS NULL THEN available_at ELSE {dialect.now} END WHERE memory_id = ?1"
        )

    def _say_learned(self, ids: str) -> None:
        """What was learned from some messages, and what hangs on that."""
        self.entries = f"SELECT {_HELD} FROM {CONTENTS.name} WHERE memory_id = ?2 AND content_id IN {ids}"
        self.precursors = (
            f"SELECT {_HELD} FROM {CONTENTS.name} WHERE memory_id = ?2 AND superseded_by IN {ids}"
        )
        self.evidence = (
            "SELECT cited.content_id, cited.source, cited.conversation_id, cited.message_id, cited.wording,"
            f" run.sequence FROM {EVIDENCE.name} cited LEFT JOIN {RUNS.name} run ON run.run_id = cited.source"
            f" WHERE cited.content_id IN {ids} ORDER BY cited.content_id, cited.source, cited.place"
        )

    def _say_whole(self, ids: str) -> None:
        """All that memories hold."""
        self.counts = {
            name: f"SELECT count(*) FROM {table} WHERE memory_id IN {ids}" for name, table in COUNTED.items()
        }
        self.counts |= {
            name: f"SELECT count(*) FROM {table} WHERE {column} IN"
            f" (SELECT {column} FROM {parent} WHERE memory_id IN {ids})"
            for name, (table, parent, column) in COUNTED_BENEATH.items()
        }
        self.memories = f"DELETE FROM {MEMORIES.name} WHERE memory_id IN {ids}"
        self.unqueue = f"DELETE FROM {QUEUE.name} WHERE memory_id IN {ids}"


# --- keeping others away ---


def hold(queries: RemovalQueries, enqueue: str, tenant: str, memory_id: str) -> Script[bool]:
    """Have nobody learn or record until the transaction ends, and whoever works lose the lease.

    Returns `False` if there is no such memory.
    """
    is_there = yield from hold_queue(queries, enqueue, tenant, memory_id)
    if is_there:
        yield Statement(queries.interrupt, (memory_id,))
    return is_there


def hold_queue(queries: RemovalQueries, enqueue: str, tenant: str, memory_id: str) -> Script[bool]:
    """Have a memory in the queue, with nobody else at it; `False` if there is no such memory.

    The row of the queue comes first, as for everybody: it is made where there is none, for else whoever makes
    it meanwhile would hold it, and wait for the memory.
    """
    ids = json.dumps([memory_id])
    yield Statement(queries.hold_queued, (ids,))
    if not (yield Statement(queries.share_memories, (ids,))):
        return False
    yield Statement(enqueue, (memory_id, tenant))
    return True


def hold_to_delete(queries: RemovalQueries, memory_ids: Sequence[str]) -> Script[None]:
    """Have nobody do anything with memories until the transaction ends; else an `OvertakenError`.

    Nobody is waited for who may wait for this: a recorder who shares a memory and is about to queue it, or
    a worker of a row of the queue that was made since.
    """
    ids = json.dumps(list(memory_ids))
    queued = yield Statement(queries.hold_queued, (ids,))
    there = yield Statement(queries.there, (ids,))
    held = yield Statement(queries.hold_memories, (ids,))
    if len(held) < len(there) or len((yield Statement(queries.queued, (ids,)))) > len(queued):
        raise OvertakenError("others are changing the memory")


# --- entries ---


def remove_entries(queries: RemovalQueries, memory_id: str, ids: Sequence[str]) -> Script[int]:
    """Remove entries with their evidence and terms; returns how many there were."""
    removed = yield Statement(queries.contents, (json.dumps(list(ids)), memory_id))
    yield from forget_terms(queries, memory_id, [position for (position,) in removed])
    return len(removed)


def remove_with_precursors(queries: RemovalQueries, memory_id: str, ids: Sequence[str]) -> Script[list[str]]:
    """Remove entries and all that they have superseded; returns the text of each."""
    rows = yield Statement(queries.with_precursors, (json.dumps(list(ids)), memory_id))
    gone = [content_id for content_id, _ in rows]
    yield from remove_entries(queries, memory_id, gone)
    return [_text_of(content_id, text) for content_id, text in rows]


def _text_of(content_id: str, stored: Any) -> str:
    """The text of an entry; a corrupt one is empty, and is found nowhere else."""
    return value_or(CONTENTS.name, content_id, stored_text, stored, "")


def forget_terms(queries: RemovalQueries, memory_id: str, positions: Sequence[int]) -> Script[None]:
    """Have entries found no more by their terms."""
    yield Statement(queries.terms, (json.dumps(list(positions)), memory_id))


# --- what was learned from messages ---

_TOUCHED = f"SELECT DISTINCT content_id FROM {EVIDENCE.name} WHERE {_CITED} AND tenant = ?3"
# Written by a run over the messages, and citing none of them: it may stand on any.
_UNCITED = (
    f"SELECT content_id FROM {CONTENTS.name} WHERE run_id IN (SELECT run_id FROM {RUNS.name}"
    " WHERE conversation_id = ?1 AND first_index <= ?3 AND last_index >= ?2)"
    f" AND NOT EXISTS (SELECT 1 FROM {EVIDENCE.name} cited WHERE cited.content_id ="
    f" {CONTENTS.name}.content_id AND cited.source = {CONTENTS.name}.run_id)"
)
# A group goes whole: its wording may be that of the message that goes.
_FORGET_GROUPS = (
    f"DELETE FROM {EVIDENCE.name} WHERE tenant = ?3 AND content_id IN"
    f" (SELECT content_id FROM {EVIDENCE.name} WHERE {_CITED})"
    f" AND EXISTS (SELECT 1 FROM {EVIDENCE.name} cited WHERE cited.content_id = {EVIDENCE.name}.content_id"
    f" AND cited.source = {EVIDENCE.name}.source"
    " AND cited.conversation_id = ?1 AND (CAST(?2 AS VARCHAR) IS NULL OR cited.message_id = ?2)) RETURNING 1"
)
_REWORD = (
    f"UPDATE {CONTENTS.name} SET content_text = ?3, text_key = ?4, run_id = ?5, content_data = '{{}}',"
    " content_vector = NULL, vector_model = NULL, vector_dimension = NULL"
    " WHERE content_id = ?1 AND memory_id = ?2"
)
_SUCCEED = (
    f"UPDATE {CONTENTS.name} SET retired_at = ?3, superseded_by = ?4, valid_to = ?5"
    " WHERE content_id = ?1 AND memory_id = ?2"
)


def touched_by(
    tenant: str, conversation_id: str, message_id: str | None, span: tuple[int, int]
) -> Script[list[str]]:
    """The ids of entries that a message, or any of a conversation, had a part in."""
    cited = yield Statement(_TOUCHED, (conversation_id, message_id, tenant))
    uncited = yield Statement(_UNCITED, (conversation_id, *span))
    return list(dict.fromkeys(content_id for (content_id,) in [*cited, *uncited]))


def held_by(sql: str, memory_id: str, ids: Iterable[str]) -> Script[list[Held]]:
    """The entries that a query gives for ids."""
    rows = yield Statement(sql, (json.dumps(list(ids)), memory_id))
    return [_held_from(row) for row in rows]


def _held_from(row: Row) -> Held:
    content_id, position, text, *rest = row
    return Held(content_id, position, _text_of(content_id, text), *rest)


def groups_of(
    queries: RemovalQueries, ids: Iterable[str], conversation_id: str, message_id: str | None
) -> Script[list[Group]]:
    """The groups of evidence of entries; those that cite the message, or the conversation, are not whole."""
    rows = yield Statement(queries.evidence, (json.dumps(list(ids)),))
    groups: dict[tuple[str, str], Group] = {}
    for content_id, source, cited_in, cited, wording, sequence in rows:
        is_whole = cited_in != conversation_id or message_id not in (None, cited)
        known = groups.get((content_id, source))
        worded = value_or(EVIDENCE.name, content_id, stored_text, wording, "")
        groups[content_id, source] = Group(
            content_id,
            source,
            known.wording if known else worded,
            # No entry can stand in words that are corrupt.
            is_whole and bool(worded) and (known is None or known.is_whole),
            sequence or 0,
        )
    return list(groups.values())


def forget_groups(tenant: str, conversation_id: str, message_id: str | None) -> Script[int]:
    """Remove the groups of evidence that cite a message, or any of a conversation; returns how many rows."""
    return len((yield Statement(_FORGET_GROUPS, (conversation_id, message_id, tenant))))


def reword(queries: RemovalQueries, tenant: str, memory_id: str, entry: Held, group: Group) -> Script[None]:
    """Have an entry say what a group of its evidence says, in the words of that."""
    text = group.wording
    values = (text_to_column(text), entries.text_key(text), group.source or None)
    yield Statement(_REWORD, (entry.content_id, memory_id, *values))
    yield from forget_terms(queries, memory_id, [entry.position])
    if entry.retired_at is None:
        yield from entries.index(tenant, memory_id, [(entry.position, text)])


def succeed(tenant: str, memory_id: str, change: Succession) -> Script[None]:
    """Let an entry come back, or have it superseded by another."""
    entry = change.entry
    values = (change.retired_at, change.superseded_by, change.valid_to)
    yield Statement(_SUCCEED, (entry.content_id, memory_id, *values))
    if change.retired_at is None:
        yield from entries.index(tenant, memory_id, [(entry.position, entry.text)])


def forget_quotes(
    queries: RemovalQueries, memory_id: str, texts: Iterable[str], looked: Looked = _NOTHING
) -> Script[None]:
    """Remove the kept answers of any run of a memory that quote texts word for word.

    What `look_for_quotes` has found for these texts before the transaction need not be looked for within it.
    """
    yield from quotes.forget_quotes(queries.answers, memory_id, texts, looked)


# --- all that memories hold ---


def count_all(queries: RemovalQueries, memory_ids: Sequence[str]) -> Script[dict[str, int]]:
    """How many rows of each kind memories have."""
    ids = json.dumps(list(memory_ids))
    counts: dict[str, int] = {}
    for name, sql in queries.counts.items():
        rows = yield Statement(sql, (ids,))
        counts[name] = int(rows[0][0])
    return counts


def remove_memories(queries: RemovalQueries, memory_ids: Sequence[str]) -> Script[Any]:
    """Remove memories with their conversations, runs and everything else that hangs on them."""
    ids = json.dumps(list(memory_ids))
    yield Statement(queries.unqueue, (ids,))
    yield Statement(queries.memories, (ids,))
