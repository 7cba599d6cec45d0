"""The export of a user's data, record by record."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter
from typing import Any

from ...items import decode_item
from ...sessions.events import queries as events
from ...sessions.events.event import ConversationEvent
from ...sessions.events.schema import COLUMNS as EVENT_COLUMNS
from ...sessions.events.schema import EVENTS
from ...sql.columns import time_to_column
from ...sql.description import Table
from ...sql.scripts import Row
from ...strategies.summaries.schema import SUMMARIES
from ...strategies.summaries.summary import COLUMNS, ConversationSummary, summaries_from
from ..conversation import summarize
from ..database import conversations
from ..database.access import MemoryDatabase, column_now
from ..database.corruption import page_from, readable, stored_object, stored_text, value_or
from ..database.schema import CONTENTS, CONVERSATIONS, EVIDENCE, FAILURES, MEMORIES, RUNS, STAGES
from ..entry import ContentType, check_type
from ..memory import lists_of
from ..times import format_time
from .langgraph_data import export_store_items
from .ownership import DataOwner, UserData, find_user_data
from .personal_data import SessionTables
from .records import exported_columns, select, to_records, to_whole_record

FORMAT = "recollect.user/1"
KINDS = ("memories", "entries", "conversations", "runs", "sessions", "events", "summaries", "store_items")

_PAGE_SIZE = 200  # rows
_LAST_INDEX = 2**62
_FIRST_TIME = time_to_column(datetime.min.replace(tzinfo=UTC))
_MEMORY = f"{select(MEMORIES)} WHERE memory_id = ?1"
_TEXTS = (
    f"SELECT content_type, content_text, content_id FROM {CONTENTS.name} WHERE memory_id = ?1"
    " AND retired_at IS NULL AND (expires_at IS NULL OR expires_at > ?2) ORDER BY position"
)
_CONVERSATIONS = (
    f"{select(CONVERSATIONS)} WHERE memory_id = ?1 AND (created_at, conversation_id) > (?2, ?3)"
    " ORDER BY created_at, conversation_id LIMIT ?4"
)
_SUMMARIES = f"SELECT {', '.join(COLUMNS)} FROM {SUMMARIES} WHERE conversation_id = ?1 ORDER BY version"


@dataclass(frozen=True)
class Record:
    """One object of an export, and the list it belongs to."""

    kind: str
    data: dict[str, Any]


async def export_records(database: MemoryDatabase, whose: DataOwner) -> AsyncIterator[Record]:
    """All data of a user. A page at a time is read."""
    found = await database.write(lambda: find_user_data(database.dialect, whose))
    for memory_id in found.memory_ids:
        async for record in _export_memory(database, memory_id):
            yield record
    for tables, ids in found.sessions:
        for session_id in ids:
            yield Record("sessions", await _session(database, tables, session_id))
    async for record in _export_logs(database, found):
        yield record
    if whose.owns_langgraph_data:
        async for item in export_store_items(database, found.tables.of_langgraph, whose.user_id):
            yield Record("store_items", item)


async def _export_memory(database: MemoryDatabase, memory_id: str) -> AsyncIterator[Record]:
    rows = await database.fetch(_MEMORY, (memory_id,), list[Row])
    if not rows:  # erased meanwhile
        return
    texts = await database.fetch(_TEXTS, (memory_id, column_now()), list[Row])
    yield Record("memories", _memory(to_whole_record(MEMORIES, rows[0]), texts))
    async for entries in _pages(database, CONTENTS, "position", memory_id):
        for entry in await _with_evidence(database, entries):
            yield Record("entries", entry)
    async for conversation in _conversations(database, memory_id):
        yield Record("conversations", conversation)
    async for runs in _pages(database, RUNS, "sequence", memory_id):
        for run in await _with_stages(database, runs):
            yield Record("runs", run)


def _memory(record: Mapping[str, Any], texts: Sequence[Row]) -> dict[str, Any]:
    lists: dict[ContentType, list[str]] = {}
    for kind, text in readable(CONTENTS.name, texts, _text_from, key=(2,)):
        lists.setdefault(kind, []).append(text)
    return {**record, **lists_of(lists)}


def _text_from(row: Row) -> tuple[ContentType, str]:
    return check_type(row[0]), stored_text(row[1])


async def _pages(
    database: MemoryDatabase, table: Table, order: str, memory_id: str
) -> AsyncIterator[list[dict[str, Any]]]:
    """The rows of a memory, in the order of a column."""
    query = f"{select(table)} WHERE memory_id = ?1 AND {order} > ?2 ORDER BY {order} LIMIT ?3"
    # `fetch` decodes many rows in a thread.
    decode = partial(page_from, partial(to_records, table), itemgetter(exported_columns(table).index(order)))
    last: Any = -1
    while last is not None:
        page = await database.fetch(query, (memory_id, last, _PAGE_SIZE), decode)
        last = page.edge
        yield page.found


async def _children(
    database: MemoryDatabase, table: Table, column: str, order: str, parents: Sequence[Mapping[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """The rows of a child table, by the ids of their parents."""
    ids = database.dialect.each.format("?1")
    query = f"{select(table)} WHERE {column} IN {ids} ORDER BY {order}"
    given = json.dumps([parent[column] for parent in parents])
    found: dict[str, list[dict[str, Any]]] = {}
    for record in await database.fetch(query, (given,), partial(to_records, table)):
        found.setdefault(record.pop(column), []).append(record)
    return found


async def _with_evidence(database: MemoryDatabase, page: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    cited = await _children(database, EVIDENCE, "content_id", "content_id, source, place", page)
    return [{**entry, "evidence": cited.get(entry["content_id"], [])} for entry in page]


async def _with_stages(database: MemoryDatabase, page: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    stages = await _children(database, STAGES, "run_id", "run_id, finished_at, stage", page)
    failures = await _children(database, FAILURES, "run_id", "run_id, attempt", page)
    return [
        {**run, "stages": stages.get(run["run_id"], []), "failures": failures.get(run["run_id"], [])}
        for run in page
    ]


async def _conversations(database: MemoryDatabase, memory_id: str) -> AsyncIterator[dict[str, Any]]:
    edge = (_FIRST_TIME, "")
    while rows := await database.fetch(_CONVERSATIONS, (memory_id, *edge, _PAGE_SIZE), list[Row]):
        for row in rows:
            yield await _with_messages(database, to_whole_record(CONVERSATIONS, row))
        last = dict(zip(exported_columns(CONVERSATIONS), rows[-1], strict=True))
        edge = (last["created_at"], last["conversation_id"])


async def _with_messages(database: MemoryDatabase, conversation: dict[str, Any]) -> dict[str, Any]:
    key = (conversation["conversation_id"], 0, _LAST_INDEX)
    # Rendered by the decoder: `fetch` runs it in a thread where there are many rows.
    return {**conversation, **await database.fetch(conversations.READ_MESSAGES, key, _messages_from)}


def _messages_from(rows: list[Row]) -> dict[str, Any]:
    messages = conversations.messages_from(rows)
    return {
        "turn_count": len(messages),
        "summary": summarize(len(messages), messages),
        "conversation_data": {"messages": [message.to_dict() for message in messages]},
    }


# --- sessions and their logs ---


async def _session(database: MemoryDatabase, tables: SessionTables, session_id: str) -> dict[str, Any]:
    about = (
        "SELECT session.created_at, session.updated_at,"
        " owner.user_id, owner.agent_id, owner.title, owner.data"
        f' FROM "{tables.sessions}" session LEFT JOIN "{tables.metadata}" owner'
        " ON owner.session_id = session.session_id"
        " WHERE session.session_id = ?1"
    )
    rows = await database.fetch(about, (session_id,), list[Row])
    created, updated, user_id, agent_id, title, data = rows[0] if rows else (None,) * 6
    return {
        "session_id": session_id,
        "created_at": _utc(created),
        "updated_at": _utc(updated),
        "user_id": user_id,
        "agent_id": agent_id,
        "title": title,
        "data": value_or(tables.metadata, session_id, stored_object, data, {}) if data else {},
        "items": await _items(database, tables, session_id),
    }


async def _items(database: MemoryDatabase, tables: SessionTables, session_id: str) -> list[Any]:
    query = f'SELECT message_data FROM "{tables.messages}" WHERE session_id = ?1 ORDER BY id'
    return await database.fetch(query, (session_id,), _items_from)


def _items_from(rows: list[Row]) -> list[Any]:
    """The items. A corrupt item is exported as its stored text."""
    return [stored if (item := decode_item(stored)) is None else item for (stored,) in rows]


def _utc(stored: object) -> str | None:
    """A time of a session. The SDK and other programs store it in various formats."""
    if stored is None:
        return None
    try:
        time = stored if isinstance(stored, datetime) else datetime.fromisoformat(str(stored))
    except ValueError:
        return str(stored)
    return format_time(time.replace(tzinfo=UTC))


async def _export_logs(database: MemoryDatabase, found: UserData) -> AsyncIterator[Record]:
    for key in found.log_ids:
        if found.tables.has_events:
            async for event in _events(database, key):
                yield Record("events", _as_json(event))
        if found.tables.has_summaries:
            for summary in await database.fetch(_SUMMARIES, (key,), _summaries_from):
                yield Record("summaries", _as_json(summary))


def _summaries_from(rows: list[Row]) -> list[ConversationSummary]:
    return readable(SUMMARIES, rows, lambda row: summaries_from([row])[0])


async def _events(database: MemoryDatabase, key: str) -> AsyncIterator[ConversationEvent]:
    place = EVENT_COLUMNS.index("sequence_number")
    decode = partial(page_from, partial(_events_from, place), itemgetter(place))
    last: Any = -1
    while last is not None:
        page = await database.fetch(events.READ_EVENTS, (key, last, _PAGE_SIZE), decode)
        for event in page.found:
            yield event
        last = page.edge


def _events_from(place: int, rows: list[Row]) -> list[ConversationEvent]:
    return readable(EVENTS, rows, lambda row: events.events_from([row])[0], key=(0, place))


def _as_json(value: ConversationEvent | ConversationSummary) -> dict[str, Any]:
    return {field.name: _json_value(getattr(value, field.name)) for field in fields(value)}


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_time(value)
    return list(value) if isinstance(value, tuple) else value
