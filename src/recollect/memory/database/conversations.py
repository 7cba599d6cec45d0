"""The rows of conversations and of their messages."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ...errors import ConflictError
from ...sql.columns import StoredTime, text_to_column, time_to_column
from ...sql.scripts import Row, Script, Statement, insert, run_all
from ..content_parts import attachments_to_column
from ..conversation import Conversation, ConversationSettings, Message, check_key, check_owner, check_role
from ..metadata import metadata_to_column
from ..tags import tags_from_column, tags_to_column
from . import memories, records
from .corruption import (
    UNKNOWN_TIME,
    or_none,
    readable,
    stored_count,
    stored_flag,
    stored_id,
    stored_object,
    stored_objects,
    stored_text,
    stored_time,
    value_or,
)
from .dialect import Dialect
from .schema import CONVERSATIONS, MESSAGES

T = TypeVar("T")
E = TypeVar("E")

COLUMNS = (
    "conversation_id, agent_id, user_id, session_id, memory_id, created_at, next_index, pipeline_result,"
    " closed_at, updated_at, provider_conversation_id, metadata, tags"
)
USER_NAMES = f"SELECT DISTINCT name FROM {MESSAGES.name} WHERE conversation_id = ?1 AND role = 'user'"
MESSAGE_COLUMNS = "message_id, role, content, message_index, created_at, name, attachments"
MADE = (
    "conversation_id",
    "tenant",
    "agent_id",
    "user_id",
    "session_id",
    "memory_id",
    "created_at",
    "updated_at",
    "next_index",
    "memory_strategy",
    "memory_injection",
    "metadata",
    "tags",
)
"""The columns of `values_of`."""
MESSAGE_ROW = (
    "conversation_id",
    "tenant",
    "memory_id",
    "message_index",
    "message_id",
    "role",
    "content",
    "created_at",
    "name",
    "attachments",
)
"""The columns of a new message."""
_MAKE = (
    f"INSERT INTO {CONVERSATIONS.name} ({', '.join(MADE)})"
    f" VALUES ({', '.join(f'?{number}' for number in range(1, len(MADE) + 1))})"
    " ON CONFLICT (conversation_id) DO NOTHING RETURNING 1"
)
_OWNED = "conversation_id = ?1 AND tenant = ?2"
READ = f"SELECT {COLUMNS} FROM {CONVERSATIONS.name} WHERE {_OWNED}"
READ_MESSAGES = (
    f"SELECT {MESSAGE_COLUMNS} FROM {MESSAGES.name}"
    " WHERE conversation_id = ?1 AND message_index BETWEEN ?2 AND ?3 ORDER BY message_index"
)
LIST_MESSAGES = (
    f"SELECT {MESSAGE_COLUMNS} FROM {MESSAGES.name} WHERE conversation_id = ?1 AND message_index >= ?2"
    f" AND message_index < {2**62} ORDER BY message_index LIMIT ?3"
)
INACTIVE = (
    f"SELECT conversation_id FROM {CONVERSATIONS.name} WHERE tenant = ?1 AND updated_at < ?2"
    " ORDER BY updated_at LIMIT ?3"
)
SET_RESULT = f"UPDATE {CONVERSATIONS.name} SET pipeline_result = ?2 WHERE conversation_id = ?1"

Settings: TypeAlias = tuple[str | None, str | None]
"""The strategy and the injection of a conversation, as column values."""


class ConversationRow(NamedTuple):
    """A conversation without its messages."""

    conversation_id: str
    agent_id: str
    user_id: str
    session_id: str
    memory_id: str
    created_at: StoredTime
    next_index: int
    pipeline_result: Any
    closed_at: StoredTime | None
    updated_at: StoredTime
    provider_conversation_id: str | None
    metadata: str | None
    tags: str | None

    @property
    def result(self) -> dict[str, Any] | None:
        """The combined result of its runs; `None` if it is corrupt."""
        return self._value(or_none(stored_object), self.pipeline_result, None)

    @property
    def started(self) -> datetime:
        """When it was created."""
        return self._value(stored_time, self.created_at, UNKNOWN_TIME)

    @property
    def changed(self) -> datetime:
        """When a message was last added."""
        return self._value(stored_time, self.updated_at, UNKNOWN_TIME)

    @property
    def closed(self) -> datetime | None:
        """When it was closed; `None` if it is open."""
        return self._value(or_none(stored_time), self.closed_at, UNKNOWN_TIME)

    @property
    def attached(self) -> dict[str, Any]:
        """The metadata that a caller attached to it."""
        return self._value(or_none(stored_object), self.metadata, None) or {}

    @property
    def labels(self) -> tuple[str, ...]:
        """The tags that a caller attached to it."""
        return self._value(tags_from_column, self.tags, ())

    def _value(self, read: Callable[[Any], T], stored: Any, default: E) -> T | E:
        return value_or(CONVERSATIONS.name, self.conversation_id, read, stored, default)

    def has(self, memory_id: str, metadata: Mapping[str, Any], tags: Sequence[str]) -> bool:
        """Whether it belongs to this memory and has this metadata and these tags."""
        return self.memory_id == memory_id and self.attached == metadata and set(self.labels) == set(tags)

    def with_messages(self, messages: Sequence[Message]) -> Conversation:
        """The conversation, with its messages."""
        conversation = Conversation(
            self.agent_id,
            self.user_id,
            (),
            self.session_id,
            self.conversation_id,
            self.started,
            self.memory_id,
            self.result,
            self.closed,
            self.attached,
            self.labels,
        )
        conversation.messages = tuple(messages)  # with their indexes: an erased message leaves a gap
        return conversation


def add(tenant: str, conversation: Conversation, memory_id: str, now: str) -> Script[bool]:
    """Add a conversation; `False` if it exists already. Raises `ConflictError` if another has its id."""
    if not (yield from make(tenant, conversation, memory_id, now)):
        yield from _check_same(tenant, conversation, memory_id)
        return False
    yield Statement(memories.TURNS_CHANGED, (memory_id,))
    yield from add_messages(tenant, memory_id, conversation.conversation_id, conversation.messages)
    return True


def open_empty(
    tenant: str, conversation: Conversation, memory_id: str, now: str, settings: Settings
) -> Script[None]:
    """Add a conversation without messages, unless it exists. Raises `ConflictError` if another has its id."""
    if not (yield from make(tenant, conversation, memory_id, now, settings)):
        rows = yield Statement(READ, (conversation.conversation_id, tenant))
        if not rows or ConversationRow(*rows[0]).memory_id != memory_id:
            raise ConflictError("another conversation has this conversation_id")


def make(
    tenant: str, conversation: Conversation, memory_id: str, now: str, settings: Settings = (None, None)
) -> Script[bool]:
    """Insert the row of a conversation, with its strategy and injection; `False` if its id is taken."""
    return bool((yield Statement(_MAKE, values_of(tenant, conversation, memory_id, now, settings))))


def values_of(
    tenant: str, conversation: Conversation, memory_id: str, now: str, settings: Settings = (None, None)
) -> tuple[Any, ...]:
    """The values of the columns `MADE` of a new conversation."""
    return (
        conversation.conversation_id,
        tenant,
        conversation.agent_id,
        conversation.user_id,
        conversation.session_id,
        memory_id,
        time_to_column(conversation.created_at),
        now,
        conversation.turn_count,
        *settings,
        metadata_to_column(conversation.metadata),
        tags_to_column(conversation.tags),
    )


def _check_same(tenant: str, conversation: Conversation, memory_id: str) -> Script[None]:
    rows = yield Statement(READ, (conversation.conversation_id, tenant))
    stored = ConversationRow(*rows[0]) if rows else None
    if stored is not None and stored.has(memory_id, conversation.metadata, conversation.tags):
        said = yield Statement(READ_MESSAGES, (stored.conversation_id, 0, conversation.turn_count - 1))
        if _said(messages_from(said)) == _said(conversation.messages):
            return
    raise ConflictError("another conversation has this conversation_id")


def _said(messages: Sequence[Message]) -> list[tuple[Any, ...]]:
    return [(message.role, message.name, message.content, message.attachments) for message in messages]


def find_existing(by_id: str, conversation_id: str, messages: Sequence[Message]) -> Script[list[Message]]:
    """The stored messages with these ids. Raises `ConflictError` if only some exist, or if they differ."""
    ids = json.dumps([message.message_id for message in messages])
    found = messages_from((yield Statement(by_id, (conversation_id, ids))))
    if found and _said(found) != _said(messages):
        raise ConflictError("other messages have these message_ids")
    return found


def add_messages(
    tenant: str, memory_id: str, conversation_id: str, messages: Sequence[Message]
) -> Script[None]:
    """Insert messages at their indexes. The transaction must have run `memories.TURNS_CHANGED` before."""
    rows = message_rows(tenant, memory_id, conversation_id, messages)
    yield from run_all(insert(MESSAGES, rows))
    if rows:
        span = (rows[0]["message_index"], rows[-1]["message_index"])
        yield Statement(records.ADD_OF_CONVERSATION, (conversation_id, *span))


def message_rows(
    tenant: str, memory_id: str, conversation_id: str, messages: Sequence[Message]
) -> list[dict[str, Any]]:
    """The rows of messages."""
    owner = (conversation_id, tenant, memory_id)
    return [
        dict(zip(MESSAGE_ROW, (*owner, *_values_of_message(message)), strict=True)) for message in messages
    ]


def _values_of_message(message: Message) -> tuple[Any, ...]:
    return (
        message.message_index,
        message.message_id,
        message.role,
        text_to_column(message.content),
        time_to_column(message.created_at),
        message.name,
        attachments_to_column(message.attachments),
    )


def in_conversation(dialect: Dialect) -> str:
    """The statement that finds messages of a conversation by a JSON list of their ids."""
    return (
        f"SELECT {MESSAGE_COLUMNS} FROM {MESSAGES.name} WHERE conversation_id = ?1"
        f" AND message_id IN {dialect.each.format('?2')} ORDER BY message_index"
    )


def by_ids(dialect: Dialect) -> str:
    """The statement that finds messages of a tenant by JSON lists of conversation id and message id."""
    wanted, columns = dialect.each.format("?2"), MESSAGE_COLUMNS.split(", ")
    return (
        "SELECT said.conversation_id, within.session_id, within.agent_id, within.user_id,"
        f" {', '.join(f'said.{name}' for name in columns)}"
        f" FROM {wanted} AS wanted JOIN {MESSAGES.name} AS said"
        f" ON said.conversation_id = {dialect.element.format('wanted.value', 0)}"
        f" AND said.message_id = {dialect.element.format('wanted.value', 1)}"
        f" JOIN {CONVERSATIONS.name} AS within ON within.conversation_id = said.conversation_id"
        " WHERE said.tenant = ?1"
    )


def row_from(rows: list[Row]) -> ConversationRow | None:
    """The conversation in the first row, if any."""
    found = rows_from(rows)
    return found[0] if found else None


def rows_from(rows: list[Row]) -> list[ConversationRow]:
    """The conversations in rows, without rows with corrupt ids."""
    return readable(CONVERSATIONS.name, rows, _row_from)


def _row_from(row: Row) -> ConversationRow:
    found = ConversationRow(*row)
    check_owner("agent_id", found.agent_id)
    check_owner("user_id", found.user_id)
    check_key("session_id", found.session_id)
    return found


def messages_from(rows: list[Row]) -> list[Message]:
    """The messages in rows, without corrupt ones."""
    return readable(MESSAGES.name, rows, _message_from)


def names_from(rows: list[Row]) -> list[str | None]:
    """The names in rows."""
    return [row[0] for row in rows]


def index_after(row: Row) -> int:
    """The index at which the page after a row of messages begins."""
    return int(row[3]) + 1


def _message_from(row: Row) -> Message:
    message_id, role, content, index, created_at, name, attachments = row
    return Message(
        check_role(role),
        stored_text(content),
        stored_id(message_id),
        stored_count(index),
        stored_time(created_at),
        or_none(stored_text)(name),
        stored_objects(attachments),
    )


_SETTINGS = ("memory_strategy", "memory_injection", "provider_conversation_id")
READ_SETTINGS = (
    f"SELECT conversation_id, {', '.join(_SETTINGS)}, coalesce(settings_version, 1)"
    f" FROM {CONVERSATIONS.name} WHERE conversation_id = ?1 AND tenant = ?2"
)
_CHANGE_SETTINGS = f"UPDATE {CONVERSATIONS.name} SET {{}} WHERE conversation_id = ?1"


def change_settings(
    lock: str, tenant: str, conversation_id: str, changes: Mapping[str, str | None], version: int | None
) -> Script[ConversationSettings | None]:
    """Change settings; `None` if there is no such conversation. Another version is a `ConflictError`."""
    rows = yield Statement(READ_SETTINGS + lock, (conversation_id, tenant))
    if not rows:
        return None
    stored = list(rows[0])
    if version not in (None, stored[-1]):
        raise ConflictError("the settings were changed since they were read")
    if changes:
        changed = {**changes, "settings_version": stored[-1] + 1}
        listed = ", ".join(f"{name} = ?{number}" for number, name in enumerate(changed, 2))
        yield Statement(_CHANGE_SETTINGS.format(listed), (conversation_id, *changed.values()))
        values = [changes.get(name, stored[place]) for place, name in enumerate(_SETTINGS, 1)]
        stored = [conversation_id, *values, stored[-1] + 1]
    return settings_from([tuple(stored)])


def settings_from(rows: list[Row]) -> ConversationSettings | None:
    """The settings in the first row, if any. A corrupt setting counts as not set."""
    if not rows:
        return None
    conversation_id, strategy, injection, provider_conversation_id, version = rows[0]
    return ConversationSettings(
        conversation_id,
        value_or(CONVERSATIONS.name, conversation_id, or_none(stored_object), strategy, None),
        value_or(CONVERSATIONS.name, conversation_id, or_none(stored_flag), injection, None),
        provider_conversation_id,
        version,
    )
