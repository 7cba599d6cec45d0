"""Permanent deletion: of entries, of what was learned from messages, and of whole memories."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import TransientError
from ...sql.columns import text_to_column
from ...sql.scripts import Row, Script, Statement
from ..rights import quotes
from ..rights.consequences import AffectedEntry, EvidenceGroup, Succession
from ..rights.quotes import QuoteScan, ResultQueries
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

_ENTRY_COLUMNS = "content_id, position, content_text, run_id, valid_from, valid_to, retired_at, superseded_by"
_CITED = "conversation_id = ?1 AND (CAST(?2 AS VARCHAR) IS NULL OR message_id = ?2)"
_NO_SCAN = QuoteScan()

# Counted in receipts: the tables with a `memory_id`.
COUNTED = {
    "memories": MEMORIES.name,
    "entries": CONTENTS.name,
    "index_rows": TERMS.name,
    "conversations": CONVERSATIONS.name,
    "runs": RUNS.name,
    "queued": QUEUE.name,
}
# Counted in receipts: child tables, each with its parent and the column that they share.
COUNTED_BENEATH = {
    "evidence": (EVIDENCE.name, CONTENTS.name, "content_id"),
    "messages": (MESSAGES.name, CONVERSATIONS.name, "conversation_id"),
    "stages": (STAGES.name, RUNS.name, "run_id"),
    "failures": (FAILURES.name, RUNS.name, "run_id"),
}
# Emptied when a memory is deleted. Its conversations stay.
OF_KNOWLEDGE = (QUEUE.name, RUNS.name, TERMS.name, CONTENTS.name)


class ConcurrentChangeError(TransientError):
    """A concurrent transaction uses the memory. Nothing was written: run the transaction again."""


class RemovalQueries:
    """The statements of permanent deletion, in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        ids = dialect.each.format("?1")
        self.with_precursors = (
            f"WITH RECURSIVE gone(content_id) AS (SELECT value FROM {ids} AS given"
            f" UNION SELECT entry.content_id FROM {CONTENTS.name} entry JOIN gone"
            " ON entry.superseded_by = gone.content_id)"
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
        self.results = ResultQueries(dialect)
        self._set_learned(ids)
        self._set_whole(ids)
        self._set_locks(dialect, ids)

    def _set_locks(self, dialect: Dialect, ids: str) -> None:
        """The statements that lock memories."""
        self.queued = f"SELECT memory_id FROM {QUEUE.name} WHERE memory_id IN {ids} ORDER BY memory_id"
        self.lock_queued = f"{self.queued}{dialect.lock}"
        self.existing = f"SELECT memory_id FROM {MEMORIES.name} WHERE memory_id IN {ids} ORDER BY memory_id"
        self.lock_memories = f"{self.existing}{dialect.skip_locked}"
        self.share_memories = f"{self.existing}{dialect.share}"
        # A worker that has the lease loses it. Other workers wait for the row.
        self.interrupt = (
            f"UPDATE {QUEUE.name} SET lease = NULL, available_at ="
            f" CASE WHEN lease IS NULL THEN available_at ELSE {dialect.now} END WHERE memory_id = ?1"
        )

    def _set_learned(self, ids: str) -> None:
        """The statements that read entries, the entries they superseded, and their evidence."""
        select = f"SELECT {_ENTRY_COLUMNS} FROM {CONTENTS.name} WHERE memory_id = ?2 AND"
        self.entries = f"{select} content_id IN {ids}"
        self.precursors = f"{select} superseded_by IN {ids}"
        self.evidence = (
            "SELECT cited.content_id, cited.source, cited.conversation_id, cited.message_id, cited.wording,"
            f" run.sequence FROM {EVIDENCE.name} cited LEFT JOIN {RUNS.name} run ON run.run_id = cited.source"
            f" WHERE cited.content_id IN {ids} ORDER BY cited.content_id, cited.source, cited.place"
        )

    def _set_whole(self, ids: str) -> None:
        """The statements about whole memories."""
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


# --- locks ---


def lock_memory(queries: RemovalQueries, enqueue: str, tenant: str, memory_id: str) -> Script[bool]:
    """Lock a memory: no run is applied and no conversation is recorded until the transaction ends.

    A worker that has a run of this memory loses its lease. Returns `False` if there is no such memory.
    """
    exists = yield from lock_queue(queries, enqueue, tenant, memory_id)
    if exists:
        yield Statement(queries.interrupt, (memory_id,))
    return exists


def lock_queue(queries: RemovalQueries, enqueue: str, tenant: str, memory_id: str) -> Script[bool]:
    """Lock the row of a memory in the queue; `False` if there is no such memory.

    Lock order: queue row first, then memory. The row is created if it is missing. Otherwise a concurrent
    transaction could create it, hold it, and wait for the memory that this transaction holds.
    """
    ids = json.dumps([memory_id])
    yield Statement(queries.lock_queued, (ids,))
    if not (yield Statement(queries.share_memories, (ids,))):
        return False
    yield Statement(enqueue, (memory_id, tenant))
    return True


def lock_to_delete(queries: RemovalQueries, memory_ids: Sequence[str]) -> Script[None]:
    """Lock memories that are to be deleted. Raises `ConcurrentChangeError` if another transaction uses one.

    This does not wait for a transaction that may wait for this one: a recorder that shares the memory and is
    about to enqueue it, or a worker that has taken a queue row that was created since.
    """
    ids = json.dumps(list(memory_ids))
    queued = yield Statement(queries.lock_queued, (ids,))
    existing = yield Statement(queries.existing, (ids,))
    locked = yield Statement(queries.lock_memories, (ids,))
    if len(locked) < len(existing) or len((yield Statement(queries.queued, (ids,)))) > len(queued):
        raise ConcurrentChangeError("another transaction is changing the memory")


# --- entries ---


def remove_entries(queries: RemovalQueries, memory_id: str, ids: Sequence[str]) -> Script[int]:
    """Remove entries with their evidence and terms; returns how many there were."""
    removed = yield Statement(queries.contents, (json.dumps(list(ids)), memory_id))
    yield from delete_terms(queries, memory_id, [position for (position,) in removed])
    return len(removed)


def remove_with_precursors(queries: RemovalQueries, memory_id: str, ids: Sequence[str]) -> Script[list[str]]:
    """Remove entries and all entries that they superseded; returns the texts."""
    rows = yield Statement(queries.with_precursors, (json.dumps(list(ids)), memory_id))
    gone = [content_id for content_id, _ in rows]
    yield from remove_entries(queries, memory_id, gone)
    return [_text_of(content_id, text) for content_id, text in rows]


def _text_of(content_id: str, stored: Any) -> str:
    """The text of an entry; empty if it is corrupt, and then no quotes of it are found."""
    return value_or(CONTENTS.name, content_id, stored_text, stored, "")


def delete_terms(queries: RemovalQueries, memory_id: str, positions: Sequence[int]) -> Script[None]:
    """Delete the terms of entries: they are no longer found by them."""
    yield Statement(queries.terms, (json.dumps(list(positions)), memory_id))


# --- what was learned from messages ---

_TOUCHED = f"SELECT DISTINCT content_id FROM {EVIDENCE.name} WHERE {_CITED} AND tenant = ?3"
# Entries of a run over the messages that cite none of them: any of the messages may support them.
_UNCITED = (
    f"SELECT content_id FROM {CONTENTS.name} WHERE run_id IN (SELECT run_id FROM {RUNS.name}"
    " WHERE conversation_id = ?1 AND first_index <= ?3 AND last_index >= ?2)"
    f" AND NOT EXISTS (SELECT 1 FROM {EVIDENCE.name} cited WHERE cited.content_id ="
    f" {CONTENTS.name}.content_id AND cited.source = {CONTENTS.name}.run_id)"
)
# A group is deleted as a whole: its wording may quote the erased message.
_DELETE_GROUPS = (
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


def affected_entries(
    tenant: str, conversation_id: str, message_id: str | None, span: tuple[int, int]
) -> Script[list[str]]:
    """The ids of the entries that a message, or any message of a conversation, supports."""
    cited = yield Statement(_TOUCHED, (conversation_id, message_id, tenant))
    uncited = yield Statement(_UNCITED, (conversation_id, *span))
    return list(dict.fromkeys(content_id for (content_id,) in [*cited, *uncited]))


def read_entries(sql: str, memory_id: str, ids: Iterable[str]) -> Script[list[AffectedEntry]]:
    """The entries that a query returns for ids."""
    rows = yield Statement(sql, (json.dumps(list(ids)), memory_id))
    return [_entry_from(row) for row in rows]


def _entry_from(row: Row) -> AffectedEntry:
    content_id, position, text, *rest = row
    return AffectedEntry(content_id, position, _text_of(content_id, text), *rest)


def read_groups(
    queries: RemovalQueries, ids: Iterable[str], conversation_id: str, message_id: str | None
) -> Script[list[EvidenceGroup]]:
    """The groups of evidence of entries. A group that cites the message or conversation is not whole."""
    rows = yield Statement(queries.evidence, (json.dumps(list(ids)),))
    groups: dict[tuple[str, str], EvidenceGroup] = {}
    for content_id, source, cited_in, cited, wording, sequence in rows:
        is_whole = cited_in != conversation_id or message_id not in (None, cited)
        known = groups.get((content_id, source))
        worded = value_or(EVIDENCE.name, content_id, stored_text, wording, "")
        groups[content_id, source] = EvidenceGroup(
            content_id,
            source,
            known.wording if known else worded,
            # A corrupt wording cannot become the text of an entry.
            is_whole and bool(worded) and (known is None or known.is_whole),
            sequence or 0,
        )
    return list(groups.values())


def delete_groups(tenant: str, conversation_id: str, message_id: str | None) -> Script[int]:
    """Delete the groups that cite a message, or any message of a conversation; returns how many rows."""
    return len((yield Statement(_DELETE_GROUPS, (conversation_id, message_id, tenant))))


def reword(
    queries: RemovalQueries, tenant: str, memory_id: str, entry: AffectedEntry, group: EvidenceGroup
) -> Script[None]:
    """Give an entry the wording of one of its groups of evidence."""
    text = group.wording
    values = (text_to_column(text), entries.text_key(text), group.source or None)
    yield Statement(_REWORD, (entry.content_id, memory_id, *values))
    yield from delete_terms(queries, memory_id, [entry.position])
    if entry.retired_at is None:
        yield from entries.index(tenant, memory_id, [(entry.position, text)])


def apply_succession(tenant: str, memory_id: str, change: Succession) -> Script[None]:
    """Make an entry current again, or let another entry supersede it."""
    entry = change.entry
    values = (change.retired_at, change.superseded_by, change.valid_to)
    yield Statement(_SUCCEED, (entry.content_id, memory_id, *values))
    if change.retired_at is None:
        yield from entries.index(tenant, memory_id, [(entry.position, entry.text)])


def delete_quoting_results(
    queries: RemovalQueries, memory_id: str, texts: Iterable[str], scan: QuoteScan = _NO_SCAN
) -> Script[None]:
    """Delete the stored results of a memory that quote texts word for word.

    A scan that ran before the transaction (`scan_results`) shortens this.
    """
    yield from quotes.delete_quoting_results(queries.results, memory_id, texts, scan)


# --- whole memories ---


def count_all(queries: RemovalQueries, memory_ids: Sequence[str]) -> Script[dict[str, int]]:
    """The number of rows of memories, by kind."""
    ids = json.dumps(list(memory_ids))
    counts: dict[str, int] = {}
    for name, sql in queries.counts.items():
        rows = yield Statement(sql, (ids,))
        counts[name] = int(rows[0][0])
    return counts


def remove_memories(queries: RemovalQueries, memory_ids: Sequence[str]) -> Script[Any]:
    """Delete memories with their conversations, runs and all other dependent rows."""
    ids = json.dumps(list(memory_ids))
    yield Statement(queries.unqueue, (ids,))
    yield Statement(queries.memories, (ids,))
