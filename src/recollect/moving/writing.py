"""Writes a batch of prepared records in one transaction. What is stored already is compared, not changed.

Lock order, as everywhere: the queue row, then the memory, then the conversation. Memories are locked in the
order of their ids, so two imports cannot wait for each other.
"""

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..memory.database import conversations, entries, memories
from ..memory.database.access import MemoryDatabase
from ..memory.database.memories import MemoryRow, owner_key, user_key
from ..memory.database.schema import (
    CONTENTS,
    CONVERSATIONS,
    EVIDENCE,
    FAILURES,
    MEMORIES,
    MESSAGE_RECORDS,
    MESSAGES,
    RUNS,
    STAGES,
)
from ..sql.columns import text_from_column
from ..sql.scripts import Script, Statement, insert, run_all
from .prepare import Chunk, Prepared, PreparedEntry, PreparedMemory, PreparedRun
from .records import ImportReport, Skipped
from .session_rows import LogRow, SessionChunk, write_sessions

_OTHERS = "another {} has this id: nothing was changed"
_PLACE_TAKEN = "another message is stored at its place"
_ID_TAKEN = "another message of its conversation has its message_id"
_STAMPS = f"SELECT memory_id, turns_stamp FROM {MEMORIES.name} WHERE memory_id IN {{}}"
_APPENDED = (
    f"UPDATE {CONVERSATIONS.name} SET next_index = ?2, learn_at = ?4,"
    " updated_at = CASE WHEN updated_at < ?3 THEN ?3 ELSE updated_at END,"
    " waiting_from = CASE WHEN CAST(?4 AS DOUBLE PRECISION) IS NULL THEN waiting_from"
    " ELSE coalesce(waiting_from, ?5) END WHERE conversation_id = ?1"
)
_PLACED = (
    f"UPDATE {MEMORIES.name} SET entries_stamp = entries_stamp + 1, next_position ="
    " CASE WHEN next_position > ?2 THEN next_position ELSE ?2 END WHERE memory_id = ?1"
)


@dataclass
class _Messages:
    """The messages that a transaction adds to a conversation, for comparison with further ones."""

    by_index: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)

    def add(self, message: Mapping[str, Any]) -> None:
        self.by_index[message["message_index"]] = _said(message)
        self.ids.add(message["message_id"])


def _said(message: Mapping[str, Any]) -> tuple[str, str, str]:
    return message["message_id"], message["role"], message["content"]


@dataclass
class _Batch:
    """The state of one transaction."""

    database: MemoryDatabase
    tenant: str
    now: str
    remapped: dict[str, str]
    """Memory ids of the source that are other memories here."""
    report: ImportReport = field(default_factory=ImportReport)
    messages: defaultdict[str, _Messages] = field(default_factory=lambda: defaultdict(_Messages))
    """New messages by conversation."""

    def ids(self, name: str, given: Iterable[str]) -> tuple[str, str]:
        """A condition for the ids in a list, and its parameter."""
        return f"{name} IN {self.database.dialect.each.format('?1')}", json.dumps(sorted(set(given)))

    def lose(self, where: str, reason: str) -> None:
        """Report a part that was not imported."""
        self.report.skip(Skipped(where, reason))


@dataclass(frozen=True)
class Written:
    """The outcome of a batch: a part of the report, and the memories that have other ids here."""

    report: ImportReport
    remapped: dict[str, str]


def write_batch(
    database: MemoryDatabase, tenant: str, now: str, prepared: Sequence[Prepared], remapped: Mapping[str, str]
) -> Script[Written]:
    """Write a batch and report what was new."""
    batch = _Batch(database, tenant, now, dict(remapped))
    yield from _write_memories(batch, [each for each in prepared if isinstance(each, PreparedMemory)])
    yield from _write_chunks(batch, [each for each in prepared if isinstance(each, Chunk)])
    yield from _write_runs(batch, [each for each in prepared if isinstance(each, PreparedRun)])
    yield from _write_entries(batch, [each for each in prepared if isinstance(each, PreparedEntry)])
    yield from write_sessions(
        database, tenant, [each for each in prepared if isinstance(each, SessionChunk | LogRow)], batch.report
    )
    return Written(batch.report, batch.remapped)


# --- memories ---


def _write_memories(batch: _Batch, found: Sequence[PreparedMemory]) -> Script[None]:
    for memory in sorted(found, key=lambda each: each.memory_id):
        key = owner_key(batch.tenant, *memory.owner)
        rows = yield Statement(memories.FIND, (key,))
        if rows:
            batch.report.existing["memories"] += 1
            if rows[0][0] != memory.memory_id:
                batch.remapped[memory.memory_id] = rows[0][0]
            continue
        row = _memory_row(batch.tenant, memory, key)
        yield from run_all(insert(MEMORIES, [row], or_nothing=True))
        made = yield Statement(memories.FIND, (key,))
        if made:
            batch.report.added["memories"] += 1
        else:
            batch.lose(memory.where, _OTHERS.format("memory"))


def _memory_row(tenant: str, memory: PreparedMemory, key: str) -> dict[str, Any]:
    # A random stamp: a cached copy of an erased memory with this id must not pass for the imported one.
    stamp = random.getrandbits(48)
    return {
        "memory_id": memory.memory_id,
        "tenant": tenant,
        "agent_id": memory.owner[0],
        "user_id": memory.owner[1],
        "owner_key": key,
        "user_key": user_key(tenant, memory.owner[1]),
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
        "version": memory.version,
        "next_position": 0,
        "entries_stamp": stamp,
        "turns_stamp": stamp,
    }


def _find_owners(batch: _Batch, owners: Iterable[tuple[str, str]]) -> Script[dict[tuple[str, str], str]]:
    """The memories of owners. Missing ones are created."""
    found: dict[tuple[str, str], str] = {}
    for owner in sorted(set(owners), key=lambda owner: owner_key(batch.tenant, *owner)):
        made = MemoryRow.new(batch.tenant, *owner, batch.now)
        found[owner] = yield from memories.find_to_record(made, batch.database.recording.find)
    return found


def _find_memories(batch: _Batch, ids: Iterable[str]) -> Script[set[str]]:
    """The ids among these that are memories of the tenant."""
    where, given = batch.ids("memory_id", ids)
    rows = yield Statement(
        f"SELECT memory_id FROM {MEMORIES.name} WHERE {where} AND tenant = ?2", (given, batch.tenant)
    )
    return {row[0] for row in rows}


# --- conversations ---


def _write_chunks(batch: _Batch, chunks: Sequence[Chunk]) -> Script[None]:
    if not chunks:
        return
    owners = yield from _find_owners(batch, [chunk.owner for chunk in chunks if chunk.owner])
    stored = yield from _stored_conversations(batch, [chunk.conversation_id for chunk in chunks])
    new: dict[str, tuple[Chunk, str]] = {}
    messages: list[dict[str, Any]] = []
    for chunk in chunks:
        known = stored.get(chunk.conversation_id)
        if known is None and chunk.conversation_id in new:
            messages += _continue_new(batch, new, chunk)
        elif known is None and chunk.owner is not None:
            memory_id = owners[chunk.owner]
            new[chunk.conversation_id] = (chunk, memory_id)
            messages += _in_memory(_new_ones(batch, chunk, {}, 0, set()), memory_id)
        elif known is None:
            batch.lose(
                chunk.where, "its conversation is not here: put its line after that of the conversation"
            )
        elif known.tenant != batch.tenant or (chunk.owner and owners[chunk.owner] != known.memory_id):
            batch.lose(chunk.where, _OTHERS.format("conversation"))
        else:
            messages += yield from _append(batch, chunk, known)
    yield from _insert_conversations(batch, new.values())
    yield from _insert_messages(batch, messages)


@dataclass
class _Known:
    """A conversation that is stored already."""

    tenant: str
    memory_id: str
    next_index: int
    learn_at: float | None


def _stored_conversations(batch: _Batch, ids: Iterable[str]) -> Script[dict[str, _Known]]:
    where, given = batch.ids("conversation_id", ids)
    columns = "conversation_id, tenant, memory_id, next_index, learn_at"
    rows = yield Statement(f"SELECT {columns} FROM {CONVERSATIONS.name} WHERE {where}", (given,))
    return {row[0]: _Known(*row[1:]) for row in rows}


def _in_memory(messages: Iterable[dict[str, Any]], memory_id: str) -> Iterator[dict[str, Any]]:
    return ({**message, "memory_id": memory_id} for message in messages)


def _continue_new(batch: _Batch, new: dict[str, tuple[Chunk, str]], chunk: Chunk) -> Iterator[dict[str, Any]]:
    """Further messages of a conversation that this batch adds."""
    first, memory_id = new[chunk.conversation_id]
    if chunk.owner is not None:
        batch.lose(chunk.where, "its conversation_id is used twice in the source")
        return iter(())
    first.row["next_index"] = max(first.row["next_index"], chunk.row["next_index"])
    return _in_memory(_new_ones(batch, chunk, {}, 0, set()), memory_id)


def _append(batch: _Batch, chunk: Chunk, known: _Known) -> Script[list[dict[str, Any]]]:
    """The messages of a stored conversation that it lacks. Those that it has must be the same."""
    if chunk.owner is not None:
        batch.report.existing["conversations"] += 1
    if not chunk.messages:
        return []
    first, last = chunk.messages[0]["message_index"], chunk.messages[-1]["message_index"]
    rows = yield Statement(conversations.READ_MESSAGES, (chunk.conversation_id, first, last))
    stored = {row[3]: (row[0], row[1], row[2]) for row in rows}
    where, given = batch.ids("message_id", [message["message_id"] for message in chunk.messages])
    found = yield Statement(
        f"SELECT message_id FROM {MESSAGES.name} WHERE {where} AND conversation_id = ?2",
        (given, chunk.conversation_id),
    )
    added = _new_ones(batch, chunk, stored, known.next_index, {row[0] for row in found})
    if added:
        learn_at = known.learn_at if chunk.learn_at is None else known.learn_at or chunk.learn_at
        known.next_index = max(chunk.row["next_index"], added[-1]["message_index"] + 1)
        values = (known.next_index, added[-1]["created_at"], learn_at, added[0]["message_index"])
        yield Statement(_APPENDED, (chunk.conversation_id, *values))
    return list(_in_memory(added, known.memory_id))


def _new_ones(
    batch: _Batch,
    chunk: Chunk,
    stored: Mapping[int, tuple[str, str, str]],
    next_index: int,
    stored_ids: set[str],
) -> list[dict[str, Any]]:
    """The messages that are neither stored nor in this transaction already. What collides is reported."""
    new = batch.messages[chunk.conversation_id]
    added = []
    for message in chunk.messages:
        index = message["message_index"]
        same = stored.get(index) or new.by_index.get(index)
        if same == _said(message):
            batch.report.existing["messages"] += 1
        elif same is not None:
            batch.lose(f"{chunk.where}, message {index}", _PLACE_TAKEN)
        elif message["message_id"] in stored_ids or message["message_id"] in new.ids:
            batch.lose(f"{chunk.where}, message {index}", _ID_TAKEN)
        elif index < next_index:  # it was erased here, and stays erased
            batch.report.skip(Skipped(chunk.where, "messages that were erased here", is_lost=False))
        else:
            new.add(message)
            added.append(message)
    return added


def _insert_conversations(batch: _Batch, new: Iterable[tuple[Chunk, str]]) -> Script[None]:
    rows = []
    for chunk, memory_id in new:
        row = {**chunk.row, "memory_id": memory_id}
        if chunk.learn_at is not None:
            row |= {"learn_at": chunk.learn_at, "waiting_from": 0}
        rows.append(row)
    batch.report.added["conversations"] += len(rows)
    yield from run_all(insert(CONVERSATIONS, rows))


def _insert_messages(batch: _Batch, messages: Sequence[dict[str, Any]]) -> Script[None]:
    if not messages:
        return
    batch.report.added["messages"] += len(messages)
    ids = sorted({message["memory_id"] for message in messages})
    for memory_id in ids:
        yield Statement(memories.TURNS_CHANGED, (memory_id,))
    rows = yield Statement(_STAMPS.format(batch.database.dialect.each.format("?1")), (json.dumps(ids),))
    stamps: dict[str, int] = dict(rows)
    yield from run_all(insert(MESSAGES, messages))
    records = [
        {name: message[name] for name in ("conversation_id", "tenant", "memory_id", "message_id")}
        | {"stamp": stamps[message["memory_id"]]}
        for message in messages
        if message["role"] != "system"
    ]
    yield from run_all(insert(MESSAGE_RECORDS, records))


# --- runs ---


def _write_runs(batch: _Batch, runs: Sequence[PreparedRun]) -> Script[None]:
    if not runs:
        return
    rows = [(run, {**run.rows.of(RUNS)[0]}) for run in runs]
    for _, row in rows:
        row["memory_id"] = batch.remapped.get(row["memory_id"], row["memory_id"])
    mine = yield from _find_memories(batch, [row["memory_id"] for _, row in rows])
    held = yield from _stored_conversations(batch, [row["conversation_id"] for _, row in rows])
    where, given = batch.ids("run_id", [row["run_id"] for _, row in rows])
    found = yield Statement(f"SELECT run_id, memory_id FROM {RUNS.name} WHERE {where}", (given,))
    stored: dict[str, str] = dict(found)
    for run, row in rows:
        conversation = held.get(row["conversation_id"])
        if row["memory_id"] in mine and stored.get(row["run_id"]) == row["memory_id"]:
            batch.report.existing["runs"] += 1
        elif row["run_id"] in stored or row["memory_id"] not in mine:
            batch.lose(run.where, "its memory is not here, or another run has this id")
        elif conversation is None or conversation.memory_id != row["memory_id"]:
            batch.lose(run.where, "its conversation is not here")
        else:
            stored[row["run_id"]] = row["memory_id"]
            yield from _insert_run(batch, run, row)


def _insert_run(batch: _Batch, run: PreparedRun, row: dict[str, Any]) -> Script[None]:
    place = yield Statement(
        f"SELECT 1 FROM {RUNS.name} WHERE memory_id = ?1 AND sequence = ?2",
        (row["memory_id"], row["sequence"]),
    )
    if place:  # the memory has runs of its own
        rows = yield Statement(
            f"SELECT max(sequence) + 1 FROM {RUNS.name} WHERE memory_id = ?1", (row["memory_id"],)
        )
        row["sequence"] = rows[0][0]
    yield from run_all(insert(RUNS, [row]))
    for table in (STAGES, FAILURES):
        yield from run_all(insert(table, run.rows.of(table)))
    batch.report.added["runs"] += 1
    if row["is_open"]:
        yield Statement(batch.database.queue.enqueue, (row["memory_id"], batch.tenant))


# --- entries ---


def _write_entries(batch: _Batch, found: Sequence[PreparedEntry]) -> Script[None]:
    if not found:
        return
    owners = yield from _find_owners(batch, [entry.owner for entry in found if entry.owner])
    named = [batch.remapped.get(entry.memory_id, entry.memory_id) for entry in found if entry.memory_id]
    mine = yield from _find_memories(batch, named)
    where, given = batch.ids("content_id", [entry.row["content_id"] for entry in found])
    rows = yield Statement(f"SELECT content_id, memory_id FROM {CONTENTS.name} WHERE {where}", (given,))
    stored: dict[str, str] = dict(rows)
    new: dict[str, list[PreparedEntry]] = {}
    for entry in found:
        memory_id = owners[entry.owner] if entry.owner else batch.remapped.get(entry.memory_id or "", "")
        memory_id = memory_id or str(entry.memory_id)
        if entry.owner is None and memory_id not in mine:
            batch.lose(entry.where, "its memory is not here: put its line after that of the memory")
        elif stored.get(entry.row["content_id"]) == memory_id:
            batch.report.existing["entries"] += 1
        elif entry.row["content_id"] in stored:
            batch.lose(entry.where, _OTHERS.format("entry"))
        else:
            stored[entry.row["content_id"]] = memory_id
            new.setdefault(memory_id, []).append(entry)
    for memory_id, of_memory in sorted(new.items()):
        yield from _insert_entries(batch, memory_id, of_memory)


def _insert_entries(batch: _Batch, memory_id: str, new: Sequence[PreparedEntry]) -> Script[None]:
    taken = yield from _taken_positions(batch, memory_id, new)
    rows: list[dict[str, Any]] = []
    loose: list[dict[str, Any]] = []
    for entry in new:
        row = {**entry.row, "memory_id": memory_id}
        fits = entry.has_place and row["position"] not in taken
        taken.add(row["position"])
        (rows if fits else loose).append(row)
    after = max([-1, *(row["position"] for row in rows)]) + 1
    yield Statement(_PLACED, (memory_id, after))
    if loose:
        first = yield from memories.advance(memory_id, batch.now, len(loose))
        for place, row in enumerate(loose, first):
            row["position"] = place
    rows += loose
    yield from run_all(insert(CONTENTS, rows))
    cited = [each for entry in new for each in entry.evidence]
    yield from run_all(insert(EVIDENCE, cited, or_nothing=True))
    current = [
        (row["position"], text_from_column(row["content_text"])) for row in rows if row["retired_at"] is None
    ]
    yield from entries.index(batch.tenant, memory_id, current)
    batch.report.added["entries"] += len(rows)


def _taken_positions(batch: _Batch, memory_id: str, new: Sequence[PreparedEntry]) -> Script[set[int]]:
    """The positions that other entries have, and those before the next position, whose entries are gone."""
    given = json.dumps([str(entry.row["position"]) for entry in new if entry.has_place])
    each = batch.database.dialect.each.format("?2")
    rows = yield Statement(
        f"SELECT position FROM {CONTENTS.name} WHERE memory_id = ?1"
        f" AND position IN (SELECT CAST(value AS BIGINT) FROM {each} AS given)",
        (memory_id, given),
    )
    return {row[0] for row in rows}
