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
from ...sql.columns import json_from_column, time_to_column
from ...sql.description import Table
from ...sql.scripts import Row
from ...strategies.summaries.schema import SUMMARIES
from ...strategies.summaries.summary import COLUMNS, ConversationSummary, summaries_from
from ..conversation import Message, summarize
from ..database import conversations, memories
from ..database.access import MemoryDatabase, column_now
from ..database.corruption import page_from, readable, stored_object, stored_text, value_or
from ..database.schema import CONTENTS, CONVERSATIONS, EVIDENCE, FAILURES, MEMORIES, MESSAGES, RUNS, STAGES
from ..entry import ContentType, check_type
from ..memory import lists_of
from ..times import format_time
from .langgraph_data import export_store_items
from .ownership import DataOwner, UserData, find_user_data
from .personal_data import DEFAULT_TENANT, SessionTables, find_personal_tables, tenant_of
from .records import IS_WAITING, exported_columns, select, to_records, to_whole_record

FORMAT = "recollect.user/2"
KINDS = ("memories", "entries", "conversations", "runs", "sessions", "events", "summaries", "store_items")

CONTINUED = {"messages": "conversations", "items": "sessions"}
"""Lines that continue the line before: more messages of a conversation, or more items of a session."""
_PAGE_SIZE = 200  # rows
_LONG_PAGE = 1000  # messages or items of one line
_FIRST_TIME = time_to_column(datetime.min.replace(tzinfo=UTC))
_MEMORY = f"{select(MEMORIES)} WHERE memory_id = ?1"
_TEXTS = (
    f"SELECT content_type, content_text, content_id FROM {CONTENTS.name} WHERE memory_id = ?1"
    " AND retired_at IS NULL AND (expires_at IS NULL OR expires_at > ?2) ORDER BY position"
)
_CONVERSATIONS = (
    f"SELECT {', '.join(exported_columns(CONVERSATIONS))}, learn_at IS NOT NULL FROM {CONVERSATIONS.name}"
    " WHERE memory_id = ?1 AND (created_at, conversation_id) > (?2, ?3)"
    " ORDER BY created_at, conversation_id LIMIT ?4"
)
_COUNT_MESSAGES = f"SELECT count(*) FROM {MESSAGES.name} WHERE conversation_id = ?1"
_ITEMS = (
    'SELECT id, message_data, created_at FROM "{}" WHERE session_id = ?1 AND id > ?2 ORDER BY id LIMIT ?3'
)
_BRANCH_COLUMNS = ("branch_id", "is_current", "created_at")
_USAGE_COLUMNS = (
    *("branch_id", "user_turn_number", "requests", "input_tokens", "output_tokens", "total_tokens"),
    *("input_tokens_details", "output_tokens_details", "created_at"),
)
_STRUCTURE_COLUMNS = (
    *("message_id", "branch_id", "message_type", "sequence_number"),
    *("user_turn_number", "branch_turn_number", "tool_name", "created_at"),
)
_SUMMARIES = f"SELECT {', '.join(COLUMNS)} FROM {SUMMARIES} WHERE conversation_id = ?1 ORDER BY version"


@dataclass(frozen=True)
class Record:
    """One object of an export, and the list it belongs to."""

    kind: str
    data: dict[str, Any]


async def export_records(database: MemoryDatabase, whose: DataOwner) -> AsyncIterator[Record]:
    """All data of a user. A page at a time is read."""
    async for record in _export_own(database, whose):
        yield record
    if whose.owns_langgraph_data:
        tables = await database.write(lambda: find_personal_tables(database.dialect))
        async for item in export_store_items(database, tables.of_langgraph, whose.user_id):
            yield Record("store_items", item)


async def _export_own(database: MemoryDatabase, whose: DataOwner) -> AsyncIterator[Record]:
    """All data of a user without the items of LangGraph's store."""
    found = await database.write(lambda: find_user_data(database.dialect, whose))
    for memory_id in found.memory_ids:
        async for record in _export_memory(database, memory_id):
            yield record
    for tables, ids in found.sessions:
        for session_id in ids:
            async for record in export_session(database, tables, session_id):
                yield record
    async for record in _export_logs(database, found):
        yield record


async def export_tenant(database: MemoryDatabase, tenant: str, agent_id: str | None) -> AsyncIterator[Record]:
    """All data of a tenant, user by user, or what one agent has of it.

    Without an agent, sessions that name no user are included where they belong to the tenant, and all items
    of LangGraph's store, which belong to the default tenant.
    """
    async for user_id in _users(database, tenant):
        async for record in _export_own(database, DataOwner(tenant, user_id, agent_id)):
            yield record
    tables = await database.write(lambda: find_personal_tables(database.dialect))
    for pair in tables.sessions:
        async for session_id, owner in _other_sessions(database, pair, tenant):
            if owner is None and agent_id is None:
                async for record in export_session(database, pair, session_id):
                    yield record
                async for record in _export_logs(database, UserData(tables, (), (), (session_id,))):
                    yield record
            elif owner is not None:  # a user without a memory
                async for record in _export_own(database, DataOwner(tenant, owner, agent_id)):
                    yield record
    if agent_id is None and tenant == DEFAULT_TENANT:
        async for item in export_store_items(database, tables.of_langgraph):
            yield Record("store_items", item)


async def _users(database: MemoryDatabase, tenant: str) -> AsyncIterator[str]:
    last = ""
    while rows := await database.fetch(memories.LIST_USERS, (tenant, last, _PAGE_SIZE), list[Row]):
        for row in rows:
            yield row[0]
        last = rows[-1][4]


async def _other_sessions(
    database: MemoryDatabase, tables: SessionTables, tenant: str
) -> AsyncIterator[tuple[str, str | None]]:
    """The sessions of users without a memory, the first of each user, and those of no user."""
    referred = (
        "conversation.session_id = session.session_id OR conversation.conversation_id = session.session_id"
    )
    query = (
        f'SELECT session.session_id, owner.user_id, owner.data FROM "{tables.sessions}" session'
        f' LEFT JOIN "{tables.metadata}" owner ON owner.session_id = session.session_id'
        " WHERE session.session_id > ?1 AND (owner.user_id IS NOT NULL OR NOT EXISTS"
        f" (SELECT 1 FROM {CONVERSATIONS.name} AS conversation WHERE {referred}))"
        " ORDER BY session.session_id LIMIT ?2"
    )
    last, told = "", set[str]()
    while rows := await database.fetch(query, (last, _PAGE_SIZE), list[Row]):
        for session_id, user_id, data in rows:
            if tenant_of(data) != tenant or user_id in told:
                continue
            if user_id is None:
                yield session_id, None
                continue
            told.add(user_id)
            key = (memories.user_key(tenant, user_id), "", 1)
            if not await database.fetch(memories.LIST_OF_USER, key, len):
                yield session_id, user_id
        last = rows[-1][0]


async def _export_memory(database: MemoryDatabase, memory_id: str) -> AsyncIterator[Record]:
    rows = await database.fetch(_MEMORY, (memory_id,), list[Row])
    if not rows:  # erased meanwhile
        return
    texts = await database.fetch(_TEXTS, (memory_id, column_now()), list[Row])
    yield Record("memories", _memory(to_whole_record(MEMORIES, rows[0]), texts))
    async for record in _conversations(database, memory_id):
        yield record
    async for runs in _pages(database, RUNS, "sequence", memory_id):
        for run in await _with_stages(database, runs):
            yield Record("runs", run)
    async for entries in _pages(database, CONTENTS, "position", memory_id):
        for entry in await _with_evidence(database, entries):
            yield Record("entries", entry)


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


async def _conversations(database: MemoryDatabase, memory_id: str) -> AsyncIterator[Record]:
    edge = (_FIRST_TIME, "")
    while rows := await database.fetch(_CONVERSATIONS, (memory_id, *edge, _PAGE_SIZE), list[Row]):
        for *row, is_waiting in rows:
            conversation = to_whole_record(CONVERSATIONS, tuple(row))
            async for record in _with_messages(database, {**conversation, IS_WAITING: bool(is_waiting)}):
                yield record
        last = dict(zip(exported_columns(CONVERSATIONS), rows[-1][:-1], strict=True))
        edge = (last["created_at"], last["conversation_id"])


async def _with_messages(database: MemoryDatabase, conversation: dict[str, Any]) -> AsyncIterator[Record]:
    """A conversation with its first messages, and lines with the others."""
    conversation_id = conversation["conversation_id"]
    ((count,),) = await database.fetch(_COUNT_MESSAGES, (conversation_id,), list[Row])
    page = await _messages_from_index(database, conversation_id, 0)
    following = await _page_after(database, conversation_id, page)
    said = {"messages": [message.to_dict() for message in page]}
    heading = {"turn_count": count, "summary": summarize(count, page), "conversation_data": said}
    if following:  # the last line has the next index of all
        heading["next_index"] = page[-1].message_index + 1
    yield Record("conversations", {**conversation, **heading})
    while following:
        page, following = following, await _page_after(database, conversation_id, following)
        next_index = page[-1].message_index + 1 if following else conversation["next_index"]
        said = {"messages": [message.to_dict() for message in page]}
        yield Record("messages", {"conversation_id": conversation_id, "next_index": next_index, **said})


async def _page_after(
    database: MemoryDatabase, conversation_id: str, page: Sequence[Message]
) -> list[Message]:
    if len(page) < _LONG_PAGE:
        return []
    return await _messages_from_index(database, conversation_id, page[-1].message_index + 1)


async def _messages_from_index(database: MemoryDatabase, conversation_id: str, first: int) -> list[Message]:
    key = (conversation_id, first, _LONG_PAGE)
    # `fetch` decodes many rows in a thread.
    return await database.fetch(conversations.LIST_MESSAGES, key, conversations.messages_from)


# --- sessions and their logs ---


async def export_session(
    database: MemoryDatabase, tables: SessionTables, session_id: str
) -> AsyncIterator[Record]:
    """A session with its first items, and lines with the others. Each item has its time and branches."""
    heading = await _heading(database, tables, session_id)
    last, is_first = 0, True
    while is_first or last:
        page = await database.fetch(_ITEMS.format(tables.messages), (session_id, last, _LONG_PAGE), list[Row])
        if not is_first and not page:
            return
        data = await _items(database, tables, session_id, page)
        yield Record(*(("sessions", {**heading, **data}) if is_first else ("items", data)))
        last, is_first = page[-1][0] if len(page) == _LONG_PAGE else 0, False


async def _heading(database: MemoryDatabase, tables: SessionTables, session_id: str) -> dict[str, Any]:
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
        "branches": await _rows(database, tables.branches, _BRANCH_COLUMNS, "branch_id", session_id),
        "usage": await _rows(database, tables.usage, _USAGE_COLUMNS, "id", session_id),
    }


async def _rows(
    database: MemoryDatabase, table: str | None, columns: Sequence[str], order: str, session_id: str
) -> list[dict[str, Any]]:
    """The rows of a session in a table of branches or usage, if the database has it."""
    if table is None:
        return []
    query = f'SELECT {", ".join(columns)} FROM "{table}" WHERE session_id = ?1 ORDER BY {order}'
    rows = await database.fetch(query, (session_id,), list[Row])
    return [_session_row(columns, row) for row in rows]


def _session_row(columns: Sequence[str], row: Row) -> dict[str, Any]:
    values = dict(zip(columns, row, strict=True))
    for name in values.keys() & {"input_tokens_details", "output_tokens_details"}:
        values[name] = None if values[name] is None else json_from_column(values[name])
    return {**values, "created_at": _utc(values["created_at"])}


async def _items(
    database: MemoryDatabase, tables: SessionTables, session_id: str, page: Sequence[Row]
) -> dict[str, Any]:
    data = {
        "session_id": session_id,
        # A corrupt item is exported as its stored text.
        "items": [stored if (item := decode_item(stored)) is None else item for _, stored, _ in page],
        "ids": [row[0] for row in page],
        "times": [_utc(row[2]) for row in page],
    }
    if tables.structure is None or not page:
        return data
    query = (
        f'SELECT {", ".join(_STRUCTURE_COLUMNS)} FROM "{tables.structure}" WHERE session_id = ?1'
        " AND message_id BETWEEN ?2 AND ?3 ORDER BY id"
    )
    rows = await database.fetch(query, (session_id, page[0][0], page[-1][0]), list[Row])
    structure = [_session_row(("item_id", *_STRUCTURE_COLUMNS[1:]), row) for row in rows]
    return {**data, "structure": structure} if structure else data


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
