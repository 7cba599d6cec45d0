"""Sessions with their items, branches and usage, events and summaries: from records to rows.

A session is compared with what is stored under its id: equal items are skipped, further ones are appended,
and a session that differs is reported and stays as it is.
"""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ..errors import ImportFormatError
from ..items import Item, decode_item, encode_items
from ..memory.conversation import check_key
from ..memory.database.access import MemoryDatabase
from ..memory.database.dialect import POSTGRESQL
from ..memory.database.schema import CONVERSATIONS
from ..memory.rights.personal_data import tenant_of
from ..memory.times import read_time
from ..sessions.advanced.turns import outline_of
from ..sessions.events.event import ConversationEvent
from ..sessions.events.queries import to_row as event_row
from ..sessions.events.schema import COLUMNS as EVENT_COLUMNS
from ..sessions.events.schema import EVENTS_TABLE, EventSchema
from ..sessions.events.schema import HEADS_TABLE as EVENT_HEADS
from ..sessions.sql.schema import (
    branches_table,
    messages_table,
    metadata_table,
    session_schema,
    sessions_table,
    structure_table,
    usage_table,
)
from ..sessions.sql.tables import tables_named
from ..sessions.tenants import DEFAULT_TENANT, stored_id
from ..sql.columns import text_to_column, time_to_column
from ..sql.description import Table
from ..sql.schema import Schema
from ..sql.scripts import Script, Statement, insert, run_all
from ..strategies.summaries.schema import HEADS_TABLE as SUMMARY_HEADS
from ..strategies.summaries.schema import SUMMARIES_TABLE, SummarySchema
from .records import ImportReport, Record, Skipped

KINDS = ("sessions", "items", "events", "summaries")
_TABLES = tables_named("agent_sessions", "agent_messages", advanced=True)
SCHEMAS: tuple[Schema, ...] = (session_schema(_TABLES), EventSchema(), SummarySchema())
"""The tables that must exist before such records are written."""
_SESSIONS, _ITEMS, _METADATA = (make(_TABLES) for make in (sessions_table, messages_table, metadata_table))
_STRUCTURE, _BRANCHES, _USAGE = (make(_TABLES) for make in (structure_table, branches_table, usage_table))
_MAIN = "main"
_DIFFERS = "a session with this id is stored and differs: it was not changed"
_STORED = f"SELECT message_data FROM {_ITEMS.name} WHERE session_id = ?1 ORDER BY id LIMIT ?2 OFFSET ?3"
_OWNER = (
    f"SELECT about.data FROM {_SESSIONS.name} AS session LEFT JOIN {_METADATA.name} AS about"
    " ON about.session_id = session.session_id WHERE session.session_id = ?1"
)
_TOUCH = f"UPDATE {_SESSIONS.name} SET updated_at = ?2 WHERE session_id = ?1 AND updated_at < ?2"
_FORGET_USAGE = (
    f"DELETE FROM {_USAGE.name} WHERE session_id = ?1 AND branch_id = ?2 AND user_turn_number = ?3"
)
_TENANT = f"SELECT tenant FROM {CONVERSATIONS.name} WHERE conversation_id = ?1"
_COUNTED = ("requests", "input_tokens", "output_tokens", "total_tokens")
_TURN_FIELDS = ("sequence_number", "user_turn_number", "branch_turn_number")


@dataclass(frozen=True)
class SessionChunk:
    """Items of a session, from the one at `first` on, with their places in branches."""

    where: str
    session_id: str
    first: int
    items: list[str] = field(repr=False)
    times: list[datetime | None] = field(repr=False)
    ids: list[int] = field(repr=False)
    structure: list[dict[str, Any]] = field(repr=False)
    """Places in branches. Each names its item by its index in this chunk."""
    heading: dict[str, Any] | None = field(default=None, repr=False)
    """The session itself, if the chunk is its first one."""
    usage: list[dict[str, Any]] = field(default_factory=list, repr=False)
    """The tokens of turns, if the chunk is a later one. They replace what is stored of these turns."""


@dataclass(frozen=True)
class LogRow:
    """A row of the event log or of the summaries."""

    where: str
    kind: str
    row: dict[str, Any] = field(repr=False)


class SessionPreparer:
    """Prepares the records of one stream. It remembers where the items of a session continue."""

    def __init__(self, tenant: str, now: datetime, latest: datetime) -> None:
        self._tenant = tenant
        self._now = now
        self._latest = latest
        self._current: tuple[str, int] | None = None
        self._stored: dict[str, str] = {}
        """Sessions that have other ids here, by their ids in the source."""

    def prepare(self, record: Record, skipped: list[Skipped]) -> SessionChunk | LogRow:
        """The rows of a record. Raises `ImportFormatError` if it is invalid."""
        data = record.data
        if record.kind == "events":
            return self._log(record, _event(data))
        if record.kind == "summaries":
            return self._log(record, _summary(data))
        session_id = check_key("session_id", data.get("session_id"))
        if session_id is None:
            raise ImportFormatError("session_id is missing")
        first, heading = 0, None
        if record.kind == "sessions":
            heading = self._heading(data)
            self._place(session_id, data.get("data") or {})
        elif self._current is None or self._current[0] != session_id:
            raise ImportFormatError("put its line after that of its session")
        else:
            first = self._current[1]
        chunk = self._chunk(record, session_id, first, heading, skipped)
        self._current = (session_id, first + len(chunk.items))
        return chunk

    def _place(self, session_id: str, about: Mapping[str, Any]) -> None:
        """Find the id of a session here. The id of a session that was exported from this tenant is kept."""
        tenant = about.get("tenant")
        if tenant == self._tenant:
            return
        bare = session_id
        if isinstance(tenant, str):
            bare = session_id.removeprefix(stored_id(tenant, "")) or session_id
        stored = stored_id(self._tenant, bare)
        if stored != session_id:
            self._stored[session_id] = stored

    def _log(self, record: Record, row: dict[str, Any]) -> LogRow:
        """A row of a log, which has the id of its session."""
        name = row["conversation_id"]
        return LogRow(record.where, record.kind, {**row, "conversation_id": self._stored.get(name, name)})

    def _heading(self, data: Mapping[str, Any]) -> dict[str, Any]:
        created = self._time(data.get("created_at")) or self._now
        extra = data.get("data") or {}
        if not isinstance(extra, Mapping):
            raise ImportFormatError("data of a session must be an object")
        if self._tenant != DEFAULT_TENANT or extra.get("tenant", DEFAULT_TENANT) != DEFAULT_TENANT:
            extra = {**extra, "tenant": self._tenant}
        names = {name: check_key(name, data.get(name)) for name in ("user_id", "agent_id")}
        return {
            "created_at": created,
            "updated_at": self._time(data.get("updated_at")) or created,
            **names,
            "title": data.get("title"),
            "data": json.dumps(dict(extra)),
            "has_metadata": any(names.values()) or bool(data.get("title")) or bool(extra),
            "branches": [self._branch(each) for each in data.get("branches") or ()],
            "usage": [self._usage(each) for each in data.get("usage") or ()],
        }

    def _branch(self, given: Any) -> dict[str, Any]:
        if not isinstance(given, Mapping) or not check_key("branch_id", given.get("branch_id")):
            raise ImportFormatError("a branch must have a branch_id")
        created = self._time(given.get("created_at")) or self._now
        return {
            "branch_id": given["branch_id"],
            "is_current": int(bool(given.get("is_current"))),
            "created_at": created,
        }

    def _usage(self, given: Any) -> dict[str, Any]:
        if not isinstance(given, Mapping):
            raise ImportFormatError("usage must be a list of objects")
        row: dict[str, Any] = {name: _count(name, given.get(name, 0)) for name in _COUNTED}
        row["branch_id"] = check_key("branch_id", given.get("branch_id")) or _MAIN
        row["user_turn_number"] = _count("user_turn_number", given.get("user_turn_number"))
        for name in ("input_tokens_details", "output_tokens_details"):
            row[name] = None if given.get(name) is None else json.dumps(given[name])
        row["created_at"] = self._time(given.get("created_at")) or self._now
        return row

    def _chunk(
        self,
        record: Record,
        session_id: str,
        first: int,
        heading: dict[str, Any] | None,
        skipped: list[Skipped],
    ) -> SessionChunk:
        data = record.data
        given = data.get("items") or []
        if not isinstance(given, list):
            raise ImportFormatError("items must be a list")
        places, encoded = _encoded(record.where, given, skipped)
        times = data.get("times") or [None] * len(given)
        ids = data.get("ids") or []
        if len(times) != len(given) or (ids and len(ids) != len(given)):
            raise ImportFormatError("times and ids must be as many as items")
        structure = self._structure(data, given, ids, places)
        return SessionChunk(
            record.where,
            self._stored.get(session_id, session_id),
            first,
            encoded,
            [self._time(times[place]) for place in places],
            [_count("ids", ids[place]) for place in places] if ids else [],
            structure,
            heading,
            [] if heading else [self._usage(each) for each in data.get("usage") or ()],
        )

    def _structure(
        self, data: Mapping[str, Any], items: Sequence[Any], ids: Sequence[Any], places: Sequence[int]
    ) -> list[dict[str, Any]]:
        """The places of items in branches: as rows of an export, or as paths through the items."""
        index = {place: number for number, place in enumerate(places)}
        if data.get("paths"):
            return _walk(data["paths"], items, index)
        by_id = {id_: index[place] for place, id_ in enumerate(ids) if place in index}
        found = []
        for row in data.get("structure") or ():
            if not isinstance(row, Mapping):
                raise ImportFormatError("structure must be a list of objects")
            if row.get("item_id") not in by_id:
                continue
            numbers = {name: _optional_count(name, row.get(name)) for name in _TURN_FIELDS}
            found.append(
                {
                    "index": by_id[row["item_id"]],
                    "branch_id": check_key("branch_id", row.get("branch_id")) or _MAIN,
                    "message_type": str(row.get("message_type") or "other"),
                    **numbers,
                    "sequence_number": numbers["sequence_number"] or 0,
                    "tool_name": None if row.get("tool_name") is None else str(row["tool_name"]),
                    "created_at": self._time(row.get("created_at")),
                }
            )
        return found

    def _time(self, given: Any) -> datetime | None:
        """A time of a session: in UTC, and not in the future."""
        time = read_time("created_at", given)
        return None if time is None else min(time, self._latest)


def _count(name: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < 2**62:
        raise ImportFormatError(f"{name} must be a whole number from 0 on")
    return given


def _optional_count(name: str, given: Any) -> int | None:
    return None if given is None else _count(name, given)


def _encoded(where: str, items: Sequence[Any], skipped: list[Skipped]) -> tuple[list[int], list[str]]:
    """The places of the items that can be stored, and their texts."""
    places, texts = [], []
    for place, item in enumerate(items):
        try:
            texts += encode_items([item])
            places.append(place)
        except TypeError as error:
            skipped.append(Skipped(f"{where}, item {place}", str(error)))
    return places, texts


def _walk(paths: Any, items: Sequence[Item], index: Mapping[int, int]) -> list[dict[str, Any]]:
    """The structure of branches that are given as lists of item indexes, in ascending order."""
    if not isinstance(paths, Mapping):
        raise ImportFormatError("paths must be an object: lists of item indexes by branch")
    found = []
    for branch, path in paths.items():
        turn = 0
        kept = [place for place in path if place in index]
        if kept != sorted(set(kept)):
            raise ImportFormatError("the item indexes of a path must ascend")
        for sequence, place in enumerate(kept, 1):
            outline = outline_of(json.dumps(items[place]))
            turn += outline.starts_turn
            found.append(
                {
                    "index": index[place],
                    "branch_id": check_key("branch_id", branch) or _MAIN,
                    "message_type": outline.kind,
                    "sequence_number": sequence,
                    "user_turn_number": turn,
                    "branch_turn_number": turn,
                    "tool_name": outline.tool,
                    "created_at": None,
                }
            )
    return found


# --- events and summaries ---


def _event(data: Mapping[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {name: data.get(name) for name in EVENT_COLUMNS}
    for name in ("created_at", "ingested_at"):
        given[name] = read_time(name, given[name])
    given["attachments"] = tuple(given["attachments"] or ())
    if not check_key("conversation_id", given["conversation_id"]):
        raise ImportFormatError("conversation_id is missing")
    _count("sequence_number", given["sequence_number"])
    event = ConversationEvent(**given)
    return dict(zip(EVENT_COLUMNS, event_row(event), strict=True))


def _summary(data: Mapping[str, Any]) -> dict[str, Any]:
    if not check_key("conversation_id", data.get("conversation_id")):
        raise ImportFormatError("conversation_id is missing")
    columns = SUMMARIES_TABLE.columns
    return {column.name: _summary_value(column.kind, column.name, data) for column in columns}


def _summary_value(kind: str, name: str, data: Mapping[str, Any]) -> Any:
    value = data.get(name)
    if value is None:
        return None
    if kind == "time":
        time = read_time(name, value)
        return None if time is None else time_to_column(time)
    if kind == "integer":
        return _count(name, value)
    if not isinstance(value, str):
        raise ImportFormatError(f"{name} must be a text")
    return text_to_column(value)


# --- transactions ---


def write_sessions(
    database: MemoryDatabase, tenant: str, prepared: Sequence[SessionChunk | LogRow], report: ImportReport
) -> Script[None]:
    """Write sessions and logs, and count them in the report."""
    for each in prepared:
        if isinstance(each, LogRow):
            yield from _write_log(tenant, each, report)
        else:
            yield from _write_chunk(database, tenant, each, report)
    kept_ids = any(isinstance(each, SessionChunk) and each.ids for each in prepared)
    if kept_ids and database.dialect is POSTGRESQL:
        name = _ITEMS.name
        yield Statement(
            f"SELECT setval(pg_get_serial_sequence('{name}', 'id'),"
            f" greatest((SELECT max(id) FROM {name}), (SELECT last_value FROM {name}_id_seq)))"
        )


def _write_chunk(
    database: MemoryDatabase, tenant: str, chunk: SessionChunk, report: ImportReport
) -> Script[None]:
    is_server = database.dialect is POSTGRESQL
    rows = yield Statement(_OWNER, (chunk.session_id,))
    is_stored = bool(rows)
    if is_stored and tenant_of(rows[0][0]) != tenant:
        report.skip(Skipped(chunk.where, "a session of another tenant has this id: it was not changed"))
        return
    if chunk.heading is not None:
        (report.existing if is_stored else report.added)["sessions"] += 1
    elif not is_stored:
        report.skip(Skipped(chunk.where, "its session is not here"))
        return
    stored = yield Statement(_STORED, (chunk.session_id, len(chunk.items) + 1, chunk.first))
    known = [decode_item(text) for (text,) in stored]
    given = [decode_item(text) for text in chunk.items]
    if known[: len(given)] != given[: len(known)]:
        report.skip(Skipped(chunk.where, _DIFFERS))
        return
    report.existing["items"] += min(len(known), len(given))
    if chunk.heading is not None and not is_stored:
        yield from _insert_heading(chunk, is_server)
    if len(known) < len(given):
        yield from _insert_items(database, chunk, len(known))
        if times := [time for time in chunk.times[len(known) :] if time]:
            yield Statement(_TOUCH, (chunk.session_id, _stamp(max(times), is_server)))
        report.added["items"] += len(given) - len(known)
    yield from _replace_usage(chunk, is_server)


def _replace_usage(chunk: SessionChunk, is_server: bool) -> Script[None]:
    for row in chunk.usage:
        place = (chunk.session_id, row["branch_id"], row["user_turn_number"])
        yield Statement(_FORGET_USAGE, place)
        values = {"session_id": chunk.session_id, **row, "created_at": _stamp(row["created_at"], is_server)}
        yield from run_all(insert(_USAGE, [values]))


def _insert_heading(chunk: SessionChunk, is_server: bool) -> Script[None]:
    heading, session_id = chunk.heading or {}, {"session_id": chunk.session_id}
    times = {name: _stamp(heading[name], is_server) for name in ("created_at", "updated_at")}
    yield from run_all(insert(_SESSIONS, [{**session_id, **times}]))
    if heading["has_metadata"]:
        owner = {name: heading[name] for name in ("user_id", "agent_id", "title", "data")}
        yield from run_all(insert(_METADATA, [{**session_id, **owner}], or_nothing=True))
    for table, name in ((_BRANCHES, "branches"), (_USAGE, "usage")):
        rows = [
            {**session_id, **row, "created_at": _stamp(row["created_at"], is_server)} for row in heading[name]
        ]
        yield from run_all(insert(table, rows, or_nothing=True))


def _insert_items(database: MemoryDatabase, chunk: SessionChunk, known: int) -> Script[None]:
    is_server = database.dialect is POSTGRESQL
    fallback = (chunk.heading or {}).get("created_at") or datetime.now(UTC)
    rows = [
        {
            "session_id": chunk.session_id,
            "message_data": chunk.items[place],
            "created_at": _stamp(chunk.times[place] or fallback, is_server),
        }
        for place in range(known, len(chunk.items))
    ]
    ids = chunk.ids[known:]
    if ids and (yield from _are_free(database, ids)):
        rows = [{"id": id_, **row} for id_, row in zip(ids, rows, strict=True)]
    made: list[int] = []
    for statement in insert(_ITEMS, rows):
        made += [row[0] for row in (yield Statement(f"{statement.sql} RETURNING id", statement.parameters))]
    new = dict(zip(range(known, len(chunk.items)), sorted(made), strict=True))
    places = [
        {
            "session_id": chunk.session_id,
            "message_id": new[row["index"]],
            **{name: value for name, value in row.items() if name not in ("index", "created_at")},
            "created_at": _stamp(row["created_at"] or chunk.times[row["index"]] or fallback, is_server),
        }
        for row in chunk.structure
        if row["index"] in new
    ]
    yield from run_all(insert(_STRUCTURE, places))


def _are_free(database: MemoryDatabase, ids: Sequence[int]) -> Script[bool]:
    wanted = f"SELECT CAST(value AS BIGINT) FROM {database.dialect.each.format('?1')} AS given"
    rows = yield Statement(
        f"SELECT 1 FROM {_ITEMS.name} WHERE id IN ({wanted}) LIMIT 1",
        (json.dumps([str(id_) for id_ in ids]),),
    )
    return not rows


def _stamp(time: datetime, is_server: bool) -> Any:
    """A time in the tables of the SDK: UTC without a zone; on SQLite the text that SQLite writes."""
    plain = time.astimezone(UTC).replace(tzinfo=None)
    return plain if is_server else plain.isoformat(sep=" ")


def _write_log(tenant: str, log: LogRow, report: ImportReport) -> Script[None]:
    if (yield from _is_of_another_tenant(tenant, log.row["conversation_id"])):
        report.skip(Skipped(log.where, "its conversation is not here"))
        return
    table = EVENTS_TABLE if log.kind == "events" else SUMMARIES_TABLE
    condition = " AND ".join(f"{name} = ?{number}" for number, name in enumerate(table.key, 1))
    key = [log.row[name] for name in table.key]
    rows = yield Statement(f"SELECT 1 FROM {table.name} WHERE {condition}", key)
    if rows:
        report.existing[log.kind] += 1
        return
    yield from run_all(insert(table, [log.row], or_nothing=True))
    report.added[log.kind] += 1
    if log.kind == "summaries":
        yield from _raise_head(SUMMARY_HEADS, log.row["conversation_id"], {"version": log.row["version"]})
    else:
        following = {"next_sequence": log.row["sequence_number"] + 1}
        made = {"tail": "[]", "stamp": f"{random.getrandbits(64):016x}"}
        yield from _raise_head(EVENT_HEADS, log.row["conversation_id"], following, made)


def _is_of_another_tenant(tenant: str, conversation_id: str) -> Script[bool]:
    """Whether the session or the conversation that a log is about belongs to another tenant."""
    conversations = yield Statement(_TENANT, (conversation_id,))
    if conversations:
        return bool(conversations[0][0] != tenant)
    sessions = yield Statement(_OWNER, (conversation_id,))
    return bool(sessions) and tenant_of(sessions[0][0]) != tenant


def _raise_head(
    table: Table, conversation_id: str, number: Mapping[str, int], made: Mapping[str, Any] | None = None
) -> Script[None]:
    """Create the head of a log, or raise the number in it."""
    ((name, value),) = number.items()
    row = {"conversation_id": conversation_id, name: value, **(made or {})}
    yield from run_all(insert(table, [row], or_nothing=True))
    yield Statement(
        f"UPDATE {table.name} SET {name} = ?2 WHERE conversation_id = ?1 AND {name} < ?2",
        (conversation_id, value),
    )
