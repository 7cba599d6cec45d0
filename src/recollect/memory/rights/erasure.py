"""Erasing, as transactions: of a user, a conversation, a message, a memory.

Each begins with the row of the queue, as all do that record or work, and then takes that of the memory:
nobody records or works meanwhile, and whoever was working has lost the lease, so that no answer on its way
brings back what is gone.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...sessions.events.schema import EVENTS
from ...sessions.events.schema import HEADS as EVENT_HEADS
from ...sql.columns import StoredTime, time_as_text
from ...sql.scripts import Script, Statement
from ...strategies.summaries.schema import HEADS as SUMMARY_HEADS
from ...strategies.summaries.schema import SUMMARIES
from ..database import conversations, memories, message_items, removal
from ..database.access import MemoryDatabase
from ..database.conversations import ConversationRow
from ..database.schema import CONVERSATIONS, FAILURES, MEMORIES, MESSAGES, RUNS, STAGES
from .consequences import Group, Held, Standing, standing_of, successions
from .ownership import Held as HeldElsewhere
from .ownership import Whose, find_belongings, find_of_conversation, memories_of
from .personal_data import Places, SessionTables, find_places, hold_sessions
from .quotes import Looked, look_for_quotes
from .session_items import BlankedItem, ErasedMessage, blank_events, blank_items, erased_message

Counts = dict[str, int]


@dataclass(frozen=True)
class Erased:
    """What an erasure came to."""

    user_id: str = field(default="", repr=False)
    memory_ids: tuple[str, ...] = ()
    """The memories of which something went."""
    counts: Counts = field(default_factory=dict)
    """How many rows of each kind went."""


@dataclass(frozen=True)
class ErasedPart:
    """What is erased of a conversation: one message, or all."""

    tenant: str
    conversation_id: str
    message_id: str | None = None
    unless_since: str | None = None
    """A time: what was added to the conversation since then keeps it from being erased."""

    def is_kept_by(self, updated_at: StoredTime) -> bool:
        """Whether a conversation that was last added to at this time stays."""
        return self.unless_since is not None and time_as_text(updated_at) >= self.unless_since


@dataclass(frozen=True)
class _Plan:
    """What follows for entries from the erasure of a part of a conversation."""

    standing: Standing
    groups: tuple[Group, ...]
    precursors: tuple[Held, ...]

    @property
    def texts(self) -> list[str]:
        """All that was said in words that must go."""
        reworded = (entry for entry, _ in self.standing.reworded)
        worded = [entry.text for entry in (*self.standing.removed, *reworded)]
        return [*worded, *(group.wording for group in self.groups if not group.is_whole)]


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
# Runs over the message, and later ones, which may have seen it for what theirs refer to.
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


def erase_user(database: MemoryDatabase, whose: Whose) -> Script[Erased]:
    """Erase all that a user has, in any table."""
    memory_ids = yield from memories_of(whose)
    yield from removal.hold_to_delete(database.removal, memory_ids)
    found = yield from find_belongings(database.dialect, whose)
    if not set(found.memory_ids) <= set(memory_ids):
        raise removal.OvertakenError("a memory has been made meanwhile")
    of_memories = f"SELECT conversation_id FROM {CONVERSATIONS.name} WHERE memory_id IN"
    theirs = f"IN ({of_memories} {database.dialect.each.format('?1')})"
    beside = yield from _erase_beside(found.places, theirs, json.dumps(list(found.memory_ids)))
    counts = beside | (yield from removal.count_all(database.removal, found.memory_ids))
    yield from removal.remove_memories(database.removal, found.memory_ids)
    # Sessions last: who undoes a turn of a chat has the turn, and then the session.
    held = yield from _erase_held(database, found.places, HeldElsewhere(found.sessions, found.keys))
    return Erased(whose.user_id, found.memory_ids, held | counts)


def _erase_held(database: MemoryDatabase, places: Places, held: HeldElsewhere) -> Script[Counts]:
    """Erase sessions with their items, and events and summaries."""
    counts: Counts = {"sessions": 0, "items": 0}
    for tables, ids in held.sessions:
        for name, number in (yield from _erase_sessions(database, tables, ids)).items():
            counts[name] += number
    return counts | (yield from _erase_logs(database, places, held.keys))


def _erase_beside(places: Places, whose: str, parameter: str) -> Script[Counts]:
    """Erase what tables of others hold of conversations."""
    counts: Counts = {}
    for table, column in places.beside:
        counts[table] = yield from _delete(table, f'"{column}" {whose}', (parameter,))
    return counts


def _erase_sessions(database: MemoryDatabase, tables: SessionTables, ids: Sequence[str]) -> Script[Counts]:
    """Erase sessions; what else belongs to them goes with their rows."""
    given = json.dumps(list(ids))
    mine = f"session_id IN {database.dialect.each.format('?1')}"
    yield from hold_sessions(database.dialect, tables, ids)
    if tables.leases is not None:
        yield Statement(f'DELETE FROM "{tables.leases}" WHERE {mine}', (given,))
    items = 0
    if tables.messages is not None:
        items = yield from _delete(tables.messages, mine, (given,))
    return {"items": items, "sessions": (yield from _delete(tables.sessions, mine, (given,)))}


def _erase_logs(database: MemoryDatabase, places: Places, keys: Iterable[str]) -> Script[Counts]:
    """Erase events and summaries, the heads first: whoever is about to add to them waits for those."""
    given = (json.dumps(list(keys)),)
    mine = f"conversation_id IN {database.dialect.each.format('?1')}"
    counts = {"events": 0, "summaries": 0}
    if places.has_events:
        yield from _delete(EVENT_HEADS, mine, given)
        counts["events"] = yield from _delete(EVENTS, mine, given)
    if places.has_summaries:
        yield from _delete(SUMMARY_HEADS, mine, given)
        counts["summaries"] = yield from _delete(SUMMARIES, mine, given)
    return counts


# --- a conversation, and a message ---


async def look_ahead(database: MemoryDatabase, part: ErasedPart) -> Looked:
    """Look for what quotes the words that an erasure will take away: it may take long, and nobody waits."""
    rows = await database.fetch(
        conversations.READ, (part.conversation_id, part.tenant), conversations.rows_from
    )
    if not rows:
        return Looked()
    plan = await database.write(partial(_plan_now, database, part, rows[0]))
    return await look_for_quotes(database, rows[0].memory_id, plan.texts if plan else ())


def erase_conversation(
    database: MemoryDatabase, part: ErasedPart, now: str, looked: Looked
) -> Script[Erased]:
    """Erase a conversation and what was learned from it."""
    tenant, conversation_id = part.tenant, part.conversation_id
    row = yield from _hold(database, part, now)
    if row is None:
        return Erased()
    counts = yield from _count_of(conversation_id)
    counts |= yield from _unlearn(database, part, row, _EVERY_INDEX, looked)
    places = yield from find_places(database.dialect)
    counts |= yield from _erase_beside(places, "= ?1", conversation_id)
    yield Statement(_DELETE_CONVERSATION, (conversation_id, tenant))
    held = yield from find_of_conversation(database.dialect, places, tenant, row)
    counts |= yield from _erase_held(database, places, held)
    yield Statement(database.queue.forget_if_done, (row.memory_id,))
    return Erased(row.user_id, (row.memory_id,), {"conversations": 1, **counts})


def erase_message(database: MemoryDatabase, part: ErasedPart, now: str, looked: Looked) -> Script[Erased]:
    """Erase a message and what was learned from it."""
    row = yield from _hold(database, part, now)
    index = yield from _index(part)
    if row is None or index is None:
        return Erased()
    key = (part.conversation_id, part.message_id)
    message = yield from _erased_message(part)
    counts = yield from _unlearn(database, part, row, (index, index), looked)
    counts["messages"] = len((yield Statement(_DELETE_MESSAGE, key)))
    for name, table in _OF_RUNS.items():
        counts[name] = yield from _delete(table, _SAW_IT, (part.conversation_id, index))
    counts["runs"] = len((yield Statement(_EMPTY_RUNS, (part.conversation_id,))))
    counts |= yield from _erase_copies(database, part, row, message)
    yield Statement(database.queue.forget_if_done, (row.memory_id,))
    return Erased(row.user_id, (row.memory_id,), counts)


def _index(part: ErasedPart) -> Script[int | None]:
    """The index of the message that is erased; `None` if there is no such message."""
    rows = yield Statement(_INDEX, (part.conversation_id, part.message_id))
    return rows[0][0] if rows else None


def _erased_message(part: ErasedPart) -> Script[ErasedMessage]:
    """The message that is erased, compared with the others of its conversation."""
    rows = yield Statement(conversations.READ_MESSAGES, (part.conversation_id, *_EVERY_INDEX))
    return erased_message(conversations.messages_from(rows), part.message_id or "")


def _hold(database: MemoryDatabase, part: ErasedPart, now: str) -> Script[ConversationRow | None]:
    """A conversation that from here on nobody adds to or learns from; `None` if there is none."""
    owned = (part.conversation_id, part.tenant)
    rows = yield Statement(conversations.READ, owned)
    if not rows or (part.message_id is not None and (yield from _index(part)) is None):
        return None
    row = ConversationRow(*rows[0])
    if part.is_kept_by(row.updated_at):
        return None
    if not (yield from removal.hold(database.removal, database.queue.enqueue, part.tenant, row.memory_id)):
        return None
    yield from memories.advance(row.memory_id, now, 0)
    yield Statement(memories.TURNS_CHANGED, (row.memory_id,))
    # It may have gone on while this waited.
    return row if (yield Statement(_LOCK_CONVERSATION, (*owned, part.unless_since))) else None


def _plan_now(database: MemoryDatabase, part: ErasedPart, row: ConversationRow) -> Script[_Plan | None]:
    """What an erasure would come to if it were done now; `None` if there is nothing to erase."""
    if part.message_id is None:
        return (yield from _plan(database, part, row, _EVERY_INDEX))
    index = yield from _index(part)
    if index is None:
        return None
    return (yield from _plan(database, part, row, (index, index)))


def _plan(
    database: MemoryDatabase, part: ErasedPart, row: ConversationRow, span: tuple[int, int]
) -> Script[_Plan]:
    queries, memory_id = database.removal, row.memory_id
    ids = yield from removal.touched_by(part.tenant, part.conversation_id, part.message_id, span)
    touched = yield from removal.held_by(queries.entries, memory_id, ids)
    groups = yield from removal.groups_of(queries, ids, part.conversation_id, part.message_id)
    standing = standing_of(touched, groups)
    gone = [entry.content_id for entry in standing.removed]
    precursors = yield from removal.held_by(queries.precursors, memory_id, gone)
    return _Plan(standing, tuple(groups), tuple(precursors))


def _unlearn(
    database: MemoryDatabase, part: ErasedPart, row: ConversationRow, span: tuple[int, int], looked: Looked
) -> Script[Counts]:
    """Undo what was learned from a message, or from any of the conversation."""
    queries, tenant, memory_id = database.removal, part.tenant, row.memory_id
    plan = yield from _plan(database, part, row, span)
    evidence = yield from removal.forget_groups(tenant, part.conversation_id, part.message_id)
    for entry, group in plan.standing.reworded:
        yield from removal.reword(queries, tenant, memory_id, entry, group)
    gone = [entry.content_id for entry in plan.standing.removed]
    removed = yield from removal.remove_entries(queries, memory_id, gone)
    for change in successions(plan.standing.removed, plan.precursors):
        yield from removal.succeed(tenant, memory_id, change)
    yield from removal.forget_quotes(queries, memory_id, plan.texts, looked)
    return {"entries": removed, "evidence": evidence}


def _erase_copies(
    database: MemoryDatabase, part: ErasedPart, row: ConversationRow, message: ErasedMessage
) -> Script[Counts]:
    """Blank the copies of a message, and delete the summaries of its conversation, which may quote it."""
    places = yield from find_places(database.dialect)
    counts: Counts = {"events": 0, "summaries": 0, "items": 0}
    held = yield from find_of_conversation(database.dialect, places, part.tenant, row)
    links = yield from message_items.read_links(part.conversation_id)
    blanked: list[BlankedItem] = []
    for tables, ids in held.sessions:
        yield from hold_sessions(database.dialect, tables, ids)
        blanked += yield from blank_items(tables, ids, message, links.get(tables.messages or "", {}))
    counts["items"] = len(blanked)
    all_links = {item_id: linked for each in links.values() for item_id, linked in each.items()}
    for key in held.keys:
        if places.has_events:
            counts["events"] += yield from blank_events(key, message, all_links, blanked)
        if places.has_summaries:
            counts["summaries"] += yield from _delete(SUMMARIES, "conversation_id = ?1", (key,))
    yield from message_items.delete_links(part.conversation_id, part.message_id)
    return counts


# --- a memory ---


def delete_memory(database: MemoryDatabase, tenant: str, memory_id: str, now: str) -> Script[Erased]:
    """Delete what a memory holds, and every run that could bring it back. Conversations stay."""
    rows = yield Statement(memories.READ, (memory_id, tenant))
    if not rows:
        return Erased()
    yield from removal.hold_to_delete(database.removal, [memory_id])
    if not (yield Statement(memories.READ, (memory_id, tenant))):  # it went while this waited
        return Erased()
    yield from memories.advance(memory_id, now, 0)
    counts = yield from removal.count_all(database.removal, [memory_id])
    for table in removal.OF_KNOWLEDGE:
        yield Statement(f"DELETE FROM {table} WHERE memory_id = ?1", (memory_id,))
    yield Statement(_FORGET_RESULTS, (memory_id,))
    if not counts["conversations"]:
        yield Statement(f"DELETE FROM {MEMORIES.name} WHERE memory_id = ?1", (memory_id,))
    kept = {"conversations", "messages", "memories" if counts["conversations"] else ""}
    gone = {name: number for name, number in counts.items() if name not in kept}
    return Erased(memories.MemoryRow(*rows[0]).user_id, (memory_id,), gone)


# --- counting ---


def _delete(table: str, condition: str, parameters: tuple[Any, ...]) -> Script[int]:
    """Delete rows, and return how many there were."""
    rows = yield Statement(f'SELECT count(*) FROM "{table}" WHERE {condition}', parameters)
    yield Statement(f'DELETE FROM "{table}" WHERE {condition}', parameters)
    return int(rows[0][0])


def _count_of(conversation_id: str) -> Script[Counts]:
    counts: Counts = {}
    for name, table in _OF_CONVERSATION.items():
        rows = yield Statement(f"SELECT count(*) FROM {table} WHERE conversation_id = ?1", (conversation_id,))
        counts[name] = int(rows[0][0])
    for name, table in _OF_RUNS.items():
        runs = f"SELECT run_id FROM {RUNS.name} WHERE conversation_id = ?1"
        rows = yield Statement(f"SELECT count(*) FROM {table} WHERE run_id IN ({runs})", (conversation_id,))
        counts[name] = int(rows[0][0])
    return counts
