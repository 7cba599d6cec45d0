"""The transactions that erase a user, a conversation or a message, and delete a memory.

Lock order, as in every transaction on a memory: the row of the queue, then the memory, then the conversation,
then its sessions. With the queue and the memory locked, no conversation is recorded and no run is applied. A
worker that has a run of this memory loses its lease, so a model response that is still on its way cannot
bring erased content back.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...sql.columns import StoredTime, time_as_text
from ...sql.scripts import Script, Statement
from ...strategies.summaries.schema import SUMMARIES
from ..database import conversations, memories, message_items, records, removal
from ..database.access import MemoryDatabase
from ..database.conversations import ConversationRow
from ..database.schema import CONVERSATIONS, FAILURES, MEMORIES, MESSAGES, RUNS, STAGES
from .consequences import AffectedEntry, EntryChanges, EvidenceGroup, decide_changes, successions
from .langgraph_data import erase_store_items, erase_threads
from .ownership import DataOwner, SessionData, find_conversation_data, find_user_data, memories_of
from .personal_data import (
    EVENT_TABLES,
    SUMMARY_TABLES,
    PersonalTables,
    SessionTables,
    find_personal_tables,
    lock_sessions,
)
from .quotes import QuoteScan, scan_results
from .session_items import BlankedItem, ErasedMessage, blank_events, blank_items, erased_message

Counts = dict[str, int]


@dataclass(frozen=True)
class ErasureResult:
    """The user whose data was erased, the memories that changed, and how many rows were deleted."""

    user_id: str = field(default="", repr=False)
    memory_ids: tuple[str, ...] = ()
    counts: Counts = field(default_factory=dict)
    """The number of deleted rows, by kind."""


@dataclass(frozen=True)
class ErasureRequest:
    """A conversation to erase, or one message of it."""

    tenant: str
    conversation_id: str
    message_id: str | None = None
    unless_since: str | None = None
    """A time. A conversation to which something was added at this time or later is not erased."""

    def is_prevented_by(self, updated_at: StoredTime) -> bool:
        """Whether a conversation that was last added to at this time is not erased."""
        return self.unless_since is not None and time_as_text(updated_at) >= self.unless_since


@dataclass(frozen=True)
class _Plan:
    """What an erasure changes in the entries of a memory."""

    changes: EntryChanges
    groups: tuple[EvidenceGroup, ...]
    precursors: tuple[AffectedEntry, ...]

    @property
    def texts(self) -> list[str]:
        """Every text that disappears: of removed and reworded entries, and of their evidence."""
        reworded = (entry for entry, _ in self.changes.reworded)
        texts = [entry.text for entry in (*self.changes.removed, *reworded)]
        return [*texts, *(group.wording for group in self.groups if not group.is_whole)]


_EVERY_INDEX = (0, 2**62)
_FORGET_RESULTS = (
    f"UPDATE {CONVERSATIONS.name} SET pipeline_result = NULL, learn_at = NULL, waiting_from = NULL"
    " WHERE memory_id = ?1"
)
_INDEX = f"SELECT message_index FROM {MESSAGES.name} WHERE conversation_id = ?1 AND message_id = ?2"
_LOCK_CONVERSATION = (
    f"UPDATE {CONVERSATIONS.name} SET pipeline_result = NULL WHERE conversation_id = ?1 AND tenant = ?2"
    " AND (CAST(?3 AS TIMESTAMPTZ) IS NULL OR updated_at < ?3) RETURNING 1"
)
_DELETE_CONVERSATION = f"DELETE FROM {CONVERSATIONS.name} WHERE conversation_id = ?1 AND tenant = ?2"
_DELETE_MESSAGE = f"DELETE FROM {MESSAGES.name} WHERE conversation_id = ?1 AND message_id = ?2 RETURNING 1"
# The runs over the message, and later ones: these may have been given the message as context.
_SAW_IT = f"run_id IN (SELECT run_id FROM {RUNS.name} WHERE conversation_id = ?1 AND last_index >= ?2)"
_EMPTY_RUNS = (
    f"DELETE FROM {RUNS.name} WHERE conversation_id = ?1 AND NOT EXISTS (SELECT 1 FROM {MESSAGES.name} said"
    f" WHERE said.conversation_id = ?1 AND said.message_index BETWEEN {RUNS.name}.first_index"
    f" AND {RUNS.name}.last_index) RETURNING 1"
)
_OF_CONVERSATION = {
    "messages": MESSAGES.name,
    "runs": RUNS.name,
}
_OF_RUNS = {"stages": STAGES.name, "failures": FAILURES.name}


# --- a user ---


def erase_user(database: MemoryDatabase, owner: DataOwner) -> Script[ErasureResult]:
    """Erase all data of a user, in every table.

    Raises `ConcurrentChangeError` if a memory of the user was created meanwhile: run the transaction again.
    """
    memory_ids = yield from memories_of(owner)
    yield from removal.lock_to_delete(database.removal, memory_ids)
    found = yield from find_user_data(database.dialect, owner)
    if not set(found.memory_ids) <= set(memory_ids):
        raise removal.ConcurrentChangeError("a memory of the user was created meanwhile")
    of_memories = f"SELECT conversation_id FROM {CONVERSATIONS.name} WHERE memory_id IN"
    theirs = f"IN ({of_memories} {database.dialect.each.format('?1')})"
    referring = yield from _erase_referring(found.tables, theirs, json.dumps(list(found.memory_ids)))
    counts = referring | (yield from removal.count_all(database.removal, found.memory_ids))
    yield from removal.remove_memories(database.removal, found.memory_ids)
    # Sessions last: undoing a chat turn locks the turn first, and then the session.
    data = SessionData(found.sessions, found.log_ids)
    erased = yield from _erase_session_data(database, found.tables, data)
    if owner.owns_langgraph_data:
        erased |= yield from erase_threads(found.tables.of_langgraph, owner.user_id)
        erased |= yield from erase_store_items(found.tables.of_langgraph, owner.user_id)
    return ErasureResult(owner.user_id, found.memory_ids, erased | counts)


def _erase_session_data(
    database: MemoryDatabase, tables: PersonalTables, data: SessionData
) -> Script[Counts]:
    """Erase sessions with their items, and events and summaries."""
    counts: Counts = {"sessions": 0, "items": 0}
    for pair, ids in data.sessions:
        for name, number in (yield from _erase_sessions(database, pair, ids)).items():
            counts[name] += number
    return counts | (yield from _erase_logs(database, tables, data.log_ids))


def _erase_referring(tables: PersonalTables, condition: str, parameter: str) -> Script[Counts]:
    """Delete and count the rows of other schemas that refer to conversations."""
    counts: Counts = {}
    for table, column in tables.referring:
        counts[table] = yield from _delete(table, f'"{column}" {condition}', (parameter,))
    return counts


def _erase_sessions(database: MemoryDatabase, tables: SessionTables, ids: Sequence[str]) -> Script[Counts]:
    """Delete sessions with their items and leases. The rows of other tables go with the sessions."""
    given = json.dumps(list(ids))
    mine = f"session_id IN {database.dialect.each.format('?1')}"
    yield from lock_sessions(database.dialect, tables, ids)
    if tables.leases is not None:
        yield Statement(f'DELETE FROM "{tables.leases}" WHERE {mine}', (given,))
    items = yield from _delete(tables.messages, mine, (given,))
    return {"items": items, "sessions": (yield from _delete(tables.sessions, mine, (given,)))}


def _erase_logs(database: MemoryDatabase, tables: PersonalTables, ids: Iterable[str]) -> Script[Counts]:
    """Delete events and summaries, the heads first: a writer that is about to append waits for the head."""
    given = (json.dumps(list(ids)),)
    mine = f"conversation_id IN {database.dialect.each.format('?1')}"
    counts = {"events": 0, "summaries": 0}
    for name, exists, described in (
        ("events", tables.has_events, EVENT_TABLES),
        ("summaries", tables.has_summaries, SUMMARY_TABLES),
    ):
        for table in described if exists else ():
            counts[name] = yield from _delete(table.name, mine, given)  # in the end, that of the rows
    return counts


# --- a conversation, and a message ---


async def scan_for_quotes(database: MemoryDatabase, request: ErasureRequest) -> QuoteScan:
    """Find the results of runs that quote the texts to erase. This may be slow: do it before the erasure."""
    rows = await database.fetch(
        conversations.READ, (request.conversation_id, request.tenant), conversations.rows_from
    )
    if not rows:
        return QuoteScan()
    plan = await database.write(partial(_plan_now, database, request, rows[0]))
    return await scan_results(database, rows[0].memory_id, plan.texts if plan else ())


def erase_conversation(
    database: MemoryDatabase, request: ErasureRequest, now: str, scan: QuoteScan
) -> Script[ErasureResult]:
    """Erase a conversation and what was learned from it."""
    tenant, conversation_id = request.tenant, request.conversation_id
    row = yield from _lock(database, request, now)
    if row is None:
        return ErasureResult()
    counts = yield from _count_rows(conversation_id)
    counts |= yield from _unlearn(database, request, row, _EVERY_INDEX, scan)
    tables = yield from find_personal_tables(database.dialect)
    counts |= yield from _erase_referring(tables, "= ?1", conversation_id)
    yield Statement(_DELETE_CONVERSATION, (conversation_id, tenant))
    data = yield from find_conversation_data(database.dialect, tables, tenant, row)
    counts |= yield from _erase_session_data(database, tables, data)
    yield Statement(database.queue.dequeue_if_done, (row.memory_id,))
    return ErasureResult(row.user_id, (row.memory_id,), {"conversations": 1, **counts})


def erase_message(
    database: MemoryDatabase, request: ErasureRequest, now: str, scan: QuoteScan
) -> Script[ErasureResult]:
    """Erase a message, its copies in sessions and events, and what was learned from it."""
    row = yield from _lock(database, request, now)
    index = yield from _index(request)
    if row is None or index is None:
        return ErasureResult()
    key = (request.conversation_id, request.message_id)
    message = yield from _erased_message(request)
    counts = yield from _unlearn(database, request, row, (index, index), scan)
    counts["messages"] = len((yield Statement(_DELETE_MESSAGE, key)))
    yield Statement(records.DELETE, key)
    for name, table in _OF_RUNS.items():
        counts[name] = yield from _delete(table, _SAW_IT, (request.conversation_id, index))
    counts["runs"] = len((yield Statement(_EMPTY_RUNS, (request.conversation_id,))))
    counts |= yield from _erase_copies(database, request, row, message)
    yield Statement(database.queue.dequeue_if_done, (row.memory_id,))
    return ErasureResult(row.user_id, (row.memory_id,), counts)


def _index(request: ErasureRequest) -> Script[int | None]:
    """The index of the message to erase; `None` if there is no such message."""
    rows = yield Statement(_INDEX, (request.conversation_id, request.message_id))
    return rows[0][0] if rows else None


def _erased_message(request: ErasureRequest) -> Script[ErasedMessage]:
    """The message to erase, compared with the others of its conversation."""
    rows = yield Statement(conversations.READ_MESSAGES, (request.conversation_id, *_EVERY_INDEX))
    return erased_message(conversations.messages_from(rows), request.message_id or "")


def _lock(database: MemoryDatabase, request: ErasureRequest, now: str) -> Script[ConversationRow | None]:
    """Lock a conversation: nothing is added to it or learned from it until the transaction ends.

    Returns `None` if there is nothing to erase.
    """
    owned = (request.conversation_id, request.tenant)
    rows = yield Statement(conversations.READ, owned)
    if not rows or (request.message_id is not None and (yield from _index(request)) is None):
        return None
    row = ConversationRow(*rows[0])
    if request.is_prevented_by(row.updated_at):
        return None
    queue = database.queue.enqueue
    if not (yield from removal.lock_memory(database.removal, queue, request.tenant, row.memory_id)):
        return None
    yield from memories.advance(row.memory_id, now, 0)
    yield Statement(memories.TURNS_CHANGED, (row.memory_id,))
    # Messages may have been added while this waited for the locks.
    return row if (yield Statement(_LOCK_CONVERSATION, (*owned, request.unless_since))) else None


def _plan_now(
    database: MemoryDatabase, request: ErasureRequest, row: ConversationRow
) -> Script[_Plan | None]:
    """The plan of an erasure, as of now; `None` if there is nothing to erase."""
    if request.message_id is None:
        return (yield from _plan(database, request, row, _EVERY_INDEX))
    index = yield from _index(request)
    if index is None:
        return None
    return (yield from _plan(database, request, row, (index, index)))


def _plan(
    database: MemoryDatabase, request: ErasureRequest, row: ConversationRow, span: tuple[int, int]
) -> Script[_Plan]:
    queries, memory_id = database.removal, row.memory_id
    conversation_id, message_id = request.conversation_id, request.message_id
    ids = yield from removal.affected_entries(request.tenant, conversation_id, message_id, span)
    affected = yield from removal.read_entries(queries.entries, memory_id, ids)
    groups = yield from removal.read_groups(queries, ids, conversation_id, message_id)
    changes = decide_changes(affected, groups)
    gone = [entry.content_id for entry in changes.removed]
    precursors = yield from removal.read_entries(queries.precursors, memory_id, gone)
    return _Plan(changes, tuple(groups), tuple(precursors))


def _unlearn(
    database: MemoryDatabase,
    request: ErasureRequest,
    row: ConversationRow,
    span: tuple[int, int],
    scan: QuoteScan,
) -> Script[Counts]:
    """Undo what was learned from a message, or from any message of the conversation."""
    queries, tenant, memory_id = database.removal, request.tenant, row.memory_id
    plan = yield from _plan(database, request, row, span)
    evidence = yield from removal.delete_groups(tenant, request.conversation_id, request.message_id)
    for entry, group in plan.changes.reworded:
        yield from removal.reword(queries, tenant, memory_id, entry, group)
    gone = [entry.content_id for entry in plan.changes.removed]
    removed = yield from removal.remove_entries(queries, memory_id, gone)
    for succession in successions(plan.changes.removed, plan.precursors):
        yield from removal.apply_succession(tenant, memory_id, succession)
    yield from removal.delete_quoting_results(queries, memory_id, plan.texts, scan)
    return {"entries": removed, "evidence": evidence}


def _erase_copies(
    database: MemoryDatabase, request: ErasureRequest, row: ConversationRow, message: ErasedMessage
) -> Script[Counts]:
    """Blank the copies of a message, and delete the summaries of its conversation, which may quote it."""
    tables = yield from find_personal_tables(database.dialect)
    counts: Counts = {"events": 0, "summaries": 0, "items": 0}
    data = yield from find_conversation_data(database.dialect, tables, request.tenant, row)
    links = yield from message_items.read_links(request.conversation_id)
    blanked: list[BlankedItem] = []
    for pair, ids in data.sessions:
        yield from lock_sessions(database.dialect, pair, ids)
        blanked += yield from blank_items(pair, ids, message, links.get(pair.messages, {}))
    counts["items"] = len(blanked)
    all_links = {item_id: linked for each in links.values() for item_id, linked in each.items()}
    for log_id in data.log_ids:
        if tables.has_events:
            counts["events"] += yield from blank_events(log_id, message, all_links, blanked)
        if tables.has_summaries:
            counts["summaries"] += yield from _delete(SUMMARIES, "conversation_id = ?1", (log_id,))
    yield from message_items.delete_links(request.conversation_id, request.message_id)
    return counts


# --- a memory ---


def delete_memory(database: MemoryDatabase, tenant: str, memory_id: str, now: str) -> Script[ErasureResult]:
    """Delete the entries of a memory, and every run that could restore them. Conversations stay."""
    rows = yield Statement(memories.READ, (memory_id, tenant))
    if not rows:
        return ErasureResult()
    yield from removal.lock_to_delete(database.removal, [memory_id])
    if not (yield Statement(memories.READ, (memory_id, tenant))):  # deleted while this waited for the lock
        return ErasureResult()
    yield from memories.advance(memory_id, now, 0)
    counts = yield from removal.count_all(database.removal, [memory_id])
    for table in removal.OF_KNOWLEDGE:
        yield Statement(f"DELETE FROM {table} WHERE memory_id = ?1", (memory_id,))
    yield Statement(_FORGET_RESULTS, (memory_id,))
    if not counts["conversations"]:
        yield Statement(f"DELETE FROM {MEMORIES.name} WHERE memory_id = ?1", (memory_id,))
    staying = {"conversations", "messages", "memories" if counts["conversations"] else ""}
    gone = {name: number for name, number in counts.items() if name not in staying}
    return ErasureResult(memories.MemoryRow(*rows[0]).user_id, (memory_id,), gone)


# --- counting ---


def _delete(table: str, condition: str, parameters: tuple[Any, ...]) -> Script[int]:
    """Delete rows; returns how many there were."""
    rows = yield Statement(f'SELECT count(*) FROM "{table}" WHERE {condition}', parameters)
    yield Statement(f'DELETE FROM "{table}" WHERE {condition}', parameters)
    return int(rows[0][0])


def _count_rows(conversation_id: str) -> Script[Counts]:
    counts: Counts = {}
    for name, table in _OF_CONVERSATION.items():
        rows = yield Statement(f"SELECT count(*) FROM {table} WHERE conversation_id = ?1", (conversation_id,))
        counts[name] = int(rows[0][0])
    for name, table in _OF_RUNS.items():
        runs = f"SELECT run_id FROM {RUNS.name} WHERE conversation_id = ?1"
        rows = yield Statement(f"SELECT count(*) FROM {table} WHERE run_id IN ({runs})", (conversation_id,))
        counts[name] = int(rows[0][0])
    return counts
