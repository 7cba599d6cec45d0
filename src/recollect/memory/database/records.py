"""The rows of search records: one for each message that is searched.

The row is added with its message. Until its record is made, its head is NULL, and searches analyse the text.
A record is replaced as a whole, and has the stamp that the messages of its memory had then: a cache reads
only the records with a newer stamp.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...sql.scripts import Row, Script, Statement, insert, run_all
from ..search.records import Place, Record, make_record
from .corruption import UNREADABLE, report_corrupt, row_id_of, stored_count, stored_text, stored_time
from .dialect import POSTGRESQL, Dialect
from .schema import MEMORIES, MESSAGE_RECORDS, MESSAGES, RECORDS_TO_MAKE, SPOKEN_MESSAGES

Key = tuple[str, str]
"""The id of a conversation and of a message in it."""

_STAMP = f"(SELECT turns_stamp FROM {MEMORIES.name} AS owner WHERE owner.memory_id = said.memory_id)"
OF_MESSAGE = "conversation_id, tenant, memory_id, message_id"
"""The columns that a record has of its message."""
_ADD = (
    f"INSERT INTO {MESSAGE_RECORDS.name} ({OF_MESSAGE}, stamp)"
    f" SELECT {OF_MESSAGE}, {_STAMP} FROM {MESSAGES.name} AS said"
    f" WHERE {SPOKEN_MESSAGES}"
)
ADD_OF_CONVERSATION = f"{_ADD} AND conversation_id = ?1 AND message_index BETWEEN ?2 AND ?3"
"""Adds the rows of messages of the conversation ?1. `memories.TURNS_CHANGED` must come before."""
ADD_OF_MESSAGE = f"{_ADD} AND conversation_id = ?1 AND message_id = ?2"
ADD_OF_MEMORY = f"{_ADD} AND memory_id = ?1"
DELETE = f"DELETE FROM {MESSAGE_RECORDS.name} WHERE conversation_id = ?1 AND message_id = ?2"
_SAID = "said.role, said.name, said.message_index, said.created_at, said.content"


class StoredRecord(NamedTuple):
    """A record with the id of its message."""

    key: Key
    record: Record


@dataclass(frozen=True)
class Said:
    """A message that is analysed."""

    key: Key
    memory_id: str
    place: Place
    text: str = field(repr=False)
    is_readable: bool = True

    @property
    def record(self) -> StoredRecord:
        """Its record, without vectors."""
        return StoredRecord(self.key, make_record(self.text, self.place))


class RecordQueries:
    """The statements about records, in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        name = MESSAGE_RECORDS.name
        empty = f"CAST('' AS {'BYTEA' if dialect is POSTGRESQL else 'BLOB'})"
        ids = dialect.each.format("?1")
        pairs = (
            f"SELECT {dialect.element.format('value', 0)}, {dialect.element.format('value', 1)} FROM {ids}"
        )
        among = f"(conversation_id, message_id) IN ({pairs} AS given)"
        self.newer = (
            "SELECT conversation_id, message_id, head, terms, counts,"
            f" CASE WHEN vector_model = CAST(?3 AS VARCHAR) THEN vectors ELSE {empty} END"
            f", stamp FROM {name} WHERE memory_id = ?1 AND stamp > ?2 AND stamp <= ?4"
        )
        self.some = (
            "SELECT conversation_id, message_id, head, terms, counts,"
            f" CASE WHEN vector_model = CAST(?2 AS VARCHAR) THEN vectors ELSE {empty} END"
            f", stamp FROM {name} WHERE {among}"
        )
        self.beside = (
            f"SELECT DISTINCT beside.conversation_id, beside.message_id FROM {MESSAGES.name} AS said"
            f" JOIN {MESSAGES.name} AS beside ON beside.conversation_id = said.conversation_id"
            " AND beside.message_index BETWEEN said.message_index - 1 AND said.message_index + 1"
            f" WHERE (said.conversation_id, said.message_id) IN ({pairs} AS given)"
        )
        self.page_end = (
            f"SELECT stamp FROM {name} WHERE memory_id = ?1 AND stamp > ?2 AND stamp <= ?3"
            " ORDER BY stamp LIMIT 1 OFFSET ?4"
        )
        of_memories = f"memory_id {dialect.among_listed('?1')}"
        self.counts = f"SELECT memory_id, count(*) FROM {name} WHERE {of_memories} GROUP BY memory_id"
        self.keys = f"SELECT memory_id, conversation_id, message_id FROM {name} WHERE {of_memories}"
        self.said = (
            f"SELECT said.conversation_id, said.message_id, said.memory_id, {_SAID}"
            f" FROM {MESSAGES.name} AS said"
            f" WHERE (said.conversation_id, said.message_id) IN ({pairs} AS given)"
        )
        self.to_make = (
            f"SELECT made.conversation_id, made.message_id, made.memory_id, {_SAID}"
            f" FROM (SELECT * FROM {name} WHERE {RECORDS_TO_MAKE}"
            " AND (CAST(?1 AS VARCHAR) IS NULL OR tenant = ?1) LIMIT ?2) AS made"
            f" LEFT JOIN {MESSAGES.name} AS said ON said.conversation_id = made.conversation_id"
            " AND said.message_id = made.message_id"
        )
        self.delete = f"DELETE FROM {name} WHERE {among}"
        self.delete_unmade = f"{self.delete} AND {RECORDS_TO_MAKE} RETURNING conversation_id, message_id"
        owners = f"{MEMORIES.name} WHERE memory_id IN {ids}"
        self.lock = f"SELECT memory_id FROM {owners} ORDER BY memory_id{dialect.lock_but_not_its_key}"
        self.advance = f"UPDATE {MEMORIES.name} SET turns_stamp = turns_stamp + 1 WHERE memory_id IN {ids}"
        self.owners = f"SELECT memory_id, tenant, turns_stamp FROM {owners}"


def write(
    queries: RecordQueries, made: Sequence[StoredRecord], owners: Mapping[Key, str], model: str | None
) -> Script[None]:
    """Replace records; `owners` has the memory of each. Their stamps must have been advanced."""
    if not made:
        return
    memory_ids = json.dumps(sorted(set(owners.values())))
    rows = yield Statement(queries.owners, (memory_ids,))
    known = {memory_id: (tenant, stamp) for memory_id, tenant, stamp in rows}
    yield Statement(queries.delete, (pairs_to_column([each.key for each in made]),))
    yield from run_all(insert(MESSAGE_RECORDS, [_row(each, owners[each.key], known, model) for each in made]))


def write_unmade(
    queries: RecordQueries, made: Sequence[StoredRecord], owners: Mapping[Key, str]
) -> Script[int]:
    """Store records without vectors for messages that have none yet; returns how many were stored."""
    memory_ids = json.dumps(sorted(set(owners.values())))
    # Lock order: memories in the order of their ids, then their rows.
    yield Statement(queries.lock, (memory_ids,))
    gone = yield Statement(queries.delete_unmade, (pairs_to_column([each.key for each in made]),))
    left = {tuple(key) for key in gone}
    mine = [each for each in made if each.key in left]
    if mine:
        yield Statement(queries.advance, (memory_ids,))
        yield from write(queries, mine, {each.key: owners[each.key] for each in mine}, None)
    return len(mine)


def _row(
    each: StoredRecord, memory_id: str, known: Mapping[str, tuple[str, int]], model: str | None
) -> dict[str, Any]:
    tenant, stamp = known[memory_id]
    return {
        "conversation_id": each.key[0],
        "message_id": each.key[1],
        "tenant": tenant,
        "memory_id": memory_id,
        "stamp": stamp,
        "vector_model": model,
        **each.record._asdict(),
    }


def pairs_to_column(keys: Iterable[Key]) -> str:
    """The ids of messages as a parameter of a statement."""
    return json.dumps([json.dumps(key) for key in keys])


def said_from(rows: list[Row]) -> list[Said]:
    """The messages in rows, without corrupt ones."""
    return [said for said in map(_said_from, rows) if said.is_readable]


def said_or_empty_from(rows: list[Row]) -> list[Said]:
    """The messages in rows. The text of a corrupt one is empty, so that it is not read again and again."""
    return list(map(_said_from, rows))


def _said_from(row: Row) -> Said:
    conversation_id, message_id, memory_id, *place, text = row
    key = (conversation_id, message_id)
    try:
        return Said(key, memory_id, place_from(place), stored_text(text))
    except UNREADABLE:
        report_corrupt(MESSAGES.name, row_id_of(*key))
        return Said(key, memory_id, Place(), "", is_readable=False)


def place_from(stored: Sequence[Any]) -> Place:
    """The place of a message: its role, name, index and time as they are stored."""
    role, name, index, created_at = stored
    speaker = stored_text(role if name is None else name)
    return Place(speaker, stored_count(index), stored_time(created_at), stored_text(role))
