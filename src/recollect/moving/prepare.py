"""Validates records and turns them into rows. Pure functions: what is invalid becomes a `Skipped`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from ..errors import ImportFormatError
from ..memory.content_parts import attachments_to_column
from ..memory.conversation import Conversation, Message, check_key, check_owner, messages_in, read_messages
from ..memory.database.entries import text_key
from ..memory.database.quiet_period import BACKLOG
from ..memory.database.schema import CONTENTS, CONVERSATIONS, EVIDENCE, FAILURES, RUNS, STAGES
from ..memory.entry import CONTENT_TYPES
from ..memory.rights.imports import IMPORTED, ParsedExport, empty_export, read_run
from ..memory.rights.records import read_learn_at, to_row
from ..memory.times import format_time, read_time
from ..sql.columns import text_from_column, text_to_column, time_to_column
from .records import Record, Skipped, stable_id
from .session_rows import KINDS as SESSION_KINDS
from .session_rows import LogRow, SessionChunk, SessionPreparer

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
"""Earlier times are mistakes of the source: no chat is older."""
_CHANGED = "its time is {}: the time of its conversation is used"
_NAMES = {"text": "content_text", "type": "content_type", "data": "content_data"}
_PROFILE = "profile"


@dataclass(frozen=True)
class Defaults:
    """What applies to records that do not say otherwise."""

    tenant: str
    now: datetime
    latest: datetime
    """The latest time that a message may have."""
    agent_id: str | None = None
    user_id: str | None = None
    learn: bool = False
    mask_messages: bool = False


@dataclass(frozen=True)
class Chunk:
    """A conversation with some of its messages. Without an owner, it continues a stored conversation."""

    where: str
    conversation_id: str
    owner: tuple[str, str] | None
    memory_id: str | None
    row: dict[str, Any] = field(repr=False)
    messages: list[dict[str, Any]] = field(repr=False)
    learn_at: float | None = None


@dataclass(frozen=True)
class PreparedEntry:
    """An entry with its evidence. Its memory is named by its owner or by its id in the export."""

    where: str
    owner: tuple[str, str] | None
    memory_id: str | None
    row: dict[str, Any] = field(repr=False)
    evidence: list[dict[str, Any]] = field(repr=False)
    has_place: bool = False
    """Whether the record says at which position of the memory the entry is."""


@dataclass(frozen=True)
class PreparedMemory:
    """A memory of an export."""

    where: str
    owner: tuple[str, str]
    memory_id: str
    created_at: str
    updated_at: str
    version: int


@dataclass(frozen=True)
class PreparedRun:
    """A run of an export, with its stages and failures."""

    where: str
    rows: ParsedExport = field(repr=False)


Prepared = Chunk | PreparedEntry | PreparedMemory | PreparedRun | SessionChunk | LogRow


class Preparer:
    """Prepares the records of one stream. It remembers where the messages of a conversation continue."""

    def __init__(self, defaults: Defaults) -> None:
        self._defaults = defaults
        self._current: tuple[str, int, datetime] | None = None
        self._sessions = SessionPreparer(defaults.tenant, defaults.now, defaults.latest)

    def prepare(self, record: Record) -> tuple[list[Prepared], list[Skipped]]:
        """The rows of a record, and what of it is lost or changed."""
        skipped: list[Skipped] = []
        try:
            return self._prepare(record, skipped), skipped
        except (TypeError, ValueError, RecursionError) as error:
            return [], [*skipped, Skipped(record.where, str(error) or type(error).__name__)]

    def _prepare(self, record: Record, skipped: list[Skipped]) -> list[Prepared]:
        data = record.data
        if not isinstance(data, Mapping):
            raise ImportFormatError(f"its data must be an object, not {type(data).__name__}")
        if record.kind in SESSION_KINDS:
            return [self._sessions.prepare(record, skipped)]
        match record.kind:
            case "conversations":
                return [self._conversation(record.where, data, skipped)]
            case "messages":
                return [self._continued(record.where, data, skipped)]
            case "entries":
                return [_entry(self._defaults, record.where, data)]
            case "memories":
                return _memory(self._defaults, record.where, data)
            case "runs":
                return [_run(self._defaults, record.where, data)]
            case "store_items":
                raise ImportFormatError("items of LangGraph's store: use `recollect import`, or import_items")
        raise ImportFormatError(f"unknown kind of record: {record.kind[:40]!r}")

    # --- conversations ---

    def _conversation(self, where: str, data: Mapping[str, Any], skipped: list[Skipped]) -> Chunk:
        given = self._defaults
        owner = _owner(given, data)
        started = _time_or_none(given, where, data.get("created_at"), skipped)
        said = messages_in(data)
        started = started or _first_time(given, said) or given.now
        conversation_id = check_key("conversation_id", data.get("conversation_id")) or stable_id(
            given.tenant, *owner, data.get("created_at"), [_identity(message) for message in said]
        )
        messages = self._messages(where, conversation_id, said, 0, started, skipped)
        last = max([started, *(message.created_at for message in messages)])
        row = _conversation_row(given, where, data, conversation_id, owner, started, last, messages)
        after = max([0, *(message.message_index + 1 for message in messages)])
        self._current = (conversation_id, after, started)
        waits = given.learn and bool(messages) and "waiting_from" not in data and "runs" not in data
        learn_at = BACKLOG + started.timestamp() if waits else None
        return Chunk(
            where,
            conversation_id,
            owner,
            check_key("memory_id", data.get("memory_id")),
            row,
            [_message_row(given.tenant, conversation_id, message) for message in messages],
            learn_at,
        )

    def _continued(self, where: str, data: Mapping[str, Any], skipped: list[Skipped]) -> Chunk:
        """Further messages of a conversation: of the one before, or at the indexes that they name."""
        given = self._defaults
        conversation_id = check_key("conversation_id", data.get("conversation_id"))
        if conversation_id is None:
            raise ImportFormatError("conversation_id is missing")
        said = messages_in(data)
        known = self._current if self._current and self._current[0] == conversation_id else None
        first = known[1] if known else _first_index(said)
        started = known[2] if known else _first_time(given, said) or given.now
        messages = self._messages(where, conversation_id, said, first, started, skipped)
        after = max([first, *(message.message_index + 1 for message in messages)])
        self._current = (conversation_id, after, started)
        rows = [_message_row(given.tenant, conversation_id, message) for message in messages]
        learns = given.learn and bool(rows) and "next_index" not in data  # which lines of exports have
        learn_at = BACKLOG + started.timestamp() if learns else None
        following = data.get("next_index", after)
        if isinstance(following, bool) or not isinstance(following, int) or not after <= following < 2**62:
            raise ImportFormatError(f"next_index must not be before {after}")
        return Chunk(where, conversation_id, None, None, {"next_index": following}, rows, learn_at)

    def _messages(
        self,
        where: str,
        conversation_id: str,
        said: Any,
        first: int,
        started: datetime,
        skipped: list[Skipped],
    ) -> list[Message]:
        found: list[Message] = []
        ids: set[str] = set()
        following = first
        for place, each in enumerate(said):
            name = f"{where}, message {first + place}"
            try:
                message = self._message(name, conversation_id, each, following, started, skipped)
            except (TypeError, ValueError, RecursionError) as error:
                skipped.append(Skipped(where, str(error)))
                continue
            if message.message_id in ids:
                skipped.append(Skipped(name, "its message_id is used twice: it gets another one"))
                message = replace(message, message_id=stable_id(conversation_id, message.message_index))
            ids.add(message.message_id)
            following = message.message_index + 1
            found.append(message)
        return found

    def _message(
        self,
        name: str,
        conversation_id: str,
        given: Any,
        following: int,
        started: datetime,
        skipped: list[Skipped],
    ) -> Message:
        if not isinstance(given, Mapping):
            raise ImportFormatError(f"message {following} must be an object, not {type(given).__name__}")
        index = given.get("message_index", following)
        if isinstance(index, bool) or not isinstance(index, int) or not following <= index < 2**62:
            raise ImportFormatError(f"message_index of message {following} must not be before {following}")
        time = _time_or_none(self._defaults, name, given.get("created_at"), skipped) or started
        message_id = given.get("message_id") or stable_id(conversation_id, index)
        (message,) = read_messages([{**given, "created_at": time, "message_id": message_id}], time, index)
        if self._defaults.mask_messages:
            message = replace(message, content=_mask(message.content))
        return message


def _owner(given: Defaults, data: Mapping[str, Any]) -> tuple[str, str]:
    agent = data.get("agent_id") or given.agent_id
    user = data.get("user_id") or given.user_id
    return check_owner("agent_id", agent), check_owner("user_id", user)


def _identity(message: Any) -> Any:
    if not isinstance(message, Mapping):
        return None
    return [message.get(name) for name in ("message_id", "role", "content", "created_at")]


def _first_index(said: Any) -> int:
    first = said[0].get("message_index") if said and isinstance(said[0], Mapping) else None
    if isinstance(first, bool) or not isinstance(first, int) or first < 0:
        raise ImportFormatError("put its line after that of its conversation, or give each message_index")
    return first


def _first_time(given: Defaults, said: Any) -> datetime | None:
    for message in said:
        if isinstance(message, Mapping) and (time := _time_or_none(given, "", message.get("created_at"), [])):
            return time
    return None


def _time_or_none(given: Defaults, where: str, value: Any, skipped: list[Skipped]) -> datetime | None:
    """A time of the source; `None`, with a line in the report, if no message can have it."""
    if value is None:
        return None
    try:
        time = read_time("created_at", value)
    except (TypeError, ValueError):
        time = None
    if time is not None and EARLIEST <= time <= given.latest:
        return time
    words = (
        "not a time in ISO 8601" if time is None else "before 1970" if time < EARLIEST else "in the future"
    )
    skipped.append(Skipped(where, _CHANGED.format(words)))
    return None


def _conversation_row(
    given: Defaults,
    where: str,
    data: Mapping[str, Any],
    conversation_id: str,
    owner: tuple[str, str],
    started: datetime,
    last: datetime,
    messages: list[Message],
) -> dict[str, Any]:
    made = Conversation(*owner, (), data.get("session_id") or conversation_id, conversation_id, started)
    stored = {name: value for name, value in data.items() if value is not None}
    record = {
        "updated_at": format_time(last),
        "next_index": 0,
        **stored,
        "conversation_id": conversation_id,
        "agent_id": owner[0],
        "user_id": owner[1],
        "session_id": made.session_id,
        "memory_id": "",
        "created_at": format_time(started),
    }
    row = to_row(CONVERSATIONS, record, where)
    if row["memory_injection"] not in (None, "true", "false"):
        raise ImportFormatError("memory_injection must be true or false, as text")
    row["updated_at"] = min(row["updated_at"], time_to_column(given.latest))
    row["next_index"] = max([row["next_index"], *(message.message_index + 1 for message in messages)])
    learn_at = read_learn_at(data, row, started, where)
    return {**row, "tenant": given.tenant, "learn_at": learn_at if given.learn else None}


def _message_row(tenant: str, conversation_id: str, message: Message) -> dict[str, Any]:
    return {
        "conversation_id": conversation_id,
        "tenant": tenant,
        "memory_id": "",
        "message_index": message.message_index,
        "message_id": message.message_id,
        "role": message.role,
        "content": text_to_column(message.content),
        "created_at": time_to_column(message.created_at),
        "name": message.name,
        "attachments": attachments_to_column(message.attachments),
    }


# --- entries, memories and runs ---


def _entry(given: Defaults, where: str, data: Mapping[str, Any]) -> PreparedEntry:
    """An entry. Secrets in its text are masked, as in every entry."""
    record = {_NAMES.get(name, name): value for name, value in data.items()}
    memory_id = check_key("memory_id", record.get("memory_id"))
    owner = None if memory_id else _owner(given, record)
    text = record.get("content_text")
    if not isinstance(text, str) or not text.strip():
        raise ImportFormatError("text must be a text that is not empty")
    record["content_text"] = _mask(text)
    record.setdefault("content_type", _PROFILE)
    if record["content_type"] not in CONTENT_TYPES:
        raise ImportFormatError(f"type must be one of {', '.join(CONTENT_TYPES)}")
    made = {
        "content_id": stable_id(given.tenant, owner, memory_id, text, record.get("learned_at")),
        "content_data": {},
        "confidence": 1.0,
        "learned_at": format_time(given.now),
        "position": 0,
    }
    stored = {name: value for name, value in record.items() if value is not None}
    row = to_row(CONTENTS, {**made, **stored, "memory_id": memory_id or ""}, where)
    _check_entry_times(given, row)
    plain = text_from_column(row["content_text"])
    row |= {"tenant": given.tenant, "text_key": text_key(plain)}
    evidence = [
        _evidence(given, where, row["content_id"], plain, place, each)
        for place, each in enumerate(record.get("evidence") or ())
    ]
    return PreparedEntry(where, owner, memory_id, row, evidence, "position" in stored)


def _check_entry_times(given: Defaults, row: dict[str, Any]) -> None:
    latest = time_to_column(given.latest)
    for name in ("learned_at", "said_at", "last_confirmed_at", "rejected_at"):
        if (row.get(name) or "") > latest:
            raise ImportFormatError(f"{name} must not be in the future")


def _evidence(
    given: Defaults, where: str, content_id: str, text: str, place: int, cited: Any
) -> dict[str, Any]:
    if not isinstance(cited, Mapping):
        raise ImportFormatError("evidence must be a list of objects")
    made = {"place": place, "source": IMPORTED, "wording": text, **cited, "content_id": content_id}
    return {**to_row(EVIDENCE, made, f"evidence of {where}"), "tenant": given.tenant}


def _memory(given: Defaults, where: str, data: Mapping[str, Any]) -> list[Prepared]:
    """A memory. The lists of texts of a memory that is not from an export become entries."""
    owner = _owner(given, data)
    memory_id = check_key("memory_id", data.get("memory_id")) or stable_id(given.tenant, *owner)
    created = read_time("created_at", data.get("created_at")) or given.now
    updated = read_time("updated_at", data.get("updated_at")) or created
    version = data.get("version", 1)
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version < 2**62:
        raise ImportFormatError("version must be a whole number from 1 on")
    first, last = (time_to_column(min(time, given.latest)) for time in (created, updated))
    found: list[Prepared] = [PreparedMemory(where, owner, memory_id, first, last, version)]
    if "memory_id" in data:
        return found
    for kind in CONTENT_TYPES:
        for text in data.get(f"{kind}_content") or ():
            made = {"agent_id": owner[0], "user_id": owner[1], "text": text, "type": kind}
            found.append(_entry(given, where, {**made, "learned_at": format_time(created)}))
    return found


def _run(given: Defaults, where: str, data: Mapping[str, Any]) -> PreparedRun:
    export = empty_export(given.tenant, time_to_column(given.now))
    read_run(export, where, data)
    memory_id = export.of(RUNS)[0]["memory_id"]
    if not memory_id:
        raise ImportFormatError("memory_id is missing")
    for table, name in ((STAGES, "stage"), (FAILURES, "attempt")):
        rows = export.of(table)
        if len({row[name] for row in rows}) < len(rows):
            raise ImportFormatError(f"it has the same {name} twice")
    return PreparedRun(where, export)


def _mask(text: str) -> str:
    from ..memory.guard.secrets import mask_secrets  # it compiles many patterns

    return mask_secrets(text).text
