"""Conversations, their messages, and their settings."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Final, Literal, Self, TypeAlias, cast, get_args

from ..errors import InvalidTypeError, InvalidValueError
from ..ids import new_id
from ..sql.columns import ColumnJSON, check_id, json_to_column
from .content_parts import Attachment, read_attachments, read_parts
from .metadata import read_metadata
from .tags import read_tags
from .times import format_time, now, read_time

Role = Literal["user", "assistant", "system", "tool"]

_ROLES = get_args(Role)
_LONGEST_KEY = 255  # characters
_PREVIEW = 100  # characters of the first user message, in the summary
_LONGEST_NAME = 255  # characters
_FIELDS = {"message_id", "role", "content", "message_index", "created_at", "name", "attachments"}


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    role: Role
    content: str = field(repr=False)
    message_id: str
    message_index: int
    created_at: datetime
    name: str | None = field(default=None, repr=False)
    """The name of the participant or tool, if one is given."""
    attachments: tuple[Attachment, ...] = field(default=(), repr=False, hash=False)
    """The content parts that are not text. Inline data is replaced by a reference."""

    @property
    def speaker(self) -> str:
        """The name of the participant, or the role where no name is given."""
        return self.name or self.role

    def is_from(self, user_id: str) -> bool:
        """Whether the user of the conversation said it: its role is `user`, and it has no other name."""
        return self.role == "user" and (self.name is None or self.name.casefold() == user_id.casefold())

    def to_dict(self) -> dict[str, Any]:
        """The message as a JSON object."""
        return {
            "message_id": self.message_id,
            "role": self.role,
            "name": self.name,
            "content": self.content,
            "attachments": [dict(each) for each in self.attachments],
            "message_index": self.message_index,
            "created_at": format_time(self.created_at),
        }


@dataclass(init=False)
class Conversation:
    """A conversation between an agent and a user.

    Messages are dicts with `role` and `content`; missing ids and times are generated. The content is a text
    or a list of content parts. `metadata` is a small JSON object of the caller, and `tags` are short texts.
    """

    agent_id: str
    user_id: str
    messages: tuple[Message, ...] = field(repr=False)
    session_id: str
    conversation_id: str
    created_at: datetime
    memory_id: str | None
    pipeline_result: dict[str, Any] | None = field(repr=False)
    """The result of the latest run. Its tokens are those of `update_result`, which include the first
    stage, and those of `mind_result`."""
    closed_at: datetime | None
    """When it was closed. No messages can be added after that."""
    metadata: dict[str, Any] = field(repr=False)
    tags: tuple[str, ...] = field(repr=False)

    def __init__(
        self,
        agent_id: str = "",
        user_id: str = "",
        messages: Sequence[Message | Mapping[str, Any]] = (),
        session_id: str | None = None,
        conversation_id: str | None = None,
        created_at: datetime | str | None = None,
        memory_id: str | None = None,
        pipeline_result: dict[str, Any] | None = None,
        closed_at: datetime | str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
    ) -> None:
        self.agent_id = check_owner("agent_id", agent_id)
        self.user_id = check_owner("user_id", user_id)
        self.session_id = check_key("session_id", session_id) or new_id()
        self.conversation_id = check_key("conversation_id", conversation_id) or new_id()
        self.created_at = read_time("created_at", created_at) or now()
        self.memory_id = check_key("memory_id", memory_id)
        self.pipeline_result = pipeline_result
        self.closed_at = read_time("closed_at", closed_at)
        self.metadata = read_metadata("metadata", metadata)
        self.tags = read_tags("tags", tags)
        self.messages = read_messages(messages, self.created_at)

    @property
    def turn_count(self) -> int:
        """The number of messages."""
        return len(self.messages)

    @property
    def summary(self) -> str:
        """One line with the number of messages and the beginning of the first user message."""
        return summarize(self.turn_count, self.messages)

    def to_dict(self) -> dict[str, Any]:
        """The conversation as a JSON object. Its messages are also under `conversation_data.messages`."""
        messages = [message.to_dict() for message in self.messages]
        return {
            "conversation_id": self.conversation_id,
            "agent_id": self.agent_id,
            "user_id": self.user_id,
            "session_id": self.session_id,
            "created_at": format_time(self.created_at),
            "turn_count": self.turn_count,
            "memory_id": self.memory_id,
            "metadata": self.metadata,
            "tags": list(self.tags),
            "messages": messages,
            "conversation_data": {"messages": messages},
            "pipeline_result": self.pipeline_result,
            "summary": self.summary,
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """A conversation from a JSON object. The messages are in `messages` or in `conversation_data`."""
        if not isinstance(given, Mapping):
            raise InvalidTypeError(f"a conversation must be an object, not {type(given).__name__}")
        return cls(
            agent_id=given.get("agent_id", ""),
            user_id=given.get("user_id", ""),
            messages=messages_in(given),
            session_id=given.get("session_id"),
            conversation_id=given.get("conversation_id"),
            created_at=given.get("created_at"),
            memory_id=given.get("memory_id"),
            pipeline_result=given.get("pipeline_result"),
            metadata=given.get("metadata"),
            tags=given.get("tags"),
        )


def messages_in(given: Mapping[str, Any]) -> Sequence[Any]:
    """The messages in the JSON of a conversation."""
    data = given if given.get("conversation_data") is None else given["conversation_data"]
    if not isinstance(data, list | Mapping):
        raise InvalidTypeError(f"conversation_data must be an object or a list, not {type(data).__name__}")
    return data if isinstance(data, list) else data.get("messages") or ()


def summarize(count: int, messages: Iterable[Message]) -> str:
    """The automatic summary of a conversation, from its number of messages and its first ones."""
    return summarize_words(count, next((each.content for each in messages if each.role == "user"), None))


def summarize_words(count: int, first: str | None) -> str:
    """The automatic summary, from the number of messages and the first user message, if any."""
    if not count:
        return "Empty conversation"
    return f"Conversation with {count} turns: {(first or 'No user message')[:_PREVIEW]}..."


def check_owner(name: str, value: object) -> str:
    """Check the id of an agent or a user: a text that is not empty."""
    if value is None:
        raise InvalidValueError(f"{name} must be given")
    return check_id(name, value)


def check_key(name: str, value: object) -> str | None:
    """Check an optional id. Its length is limited so that every index can hold it."""
    if value is None:
        return None
    if len(check_id(name, value)) > _LONGEST_KEY:
        raise InvalidValueError(f"{name} must not be longer than {_LONGEST_KEY} characters")
    return str(value)


def read_messages(
    given: Sequence[Message | Mapping[str, Any]], said_at: datetime, first_index: int = 0
) -> tuple[Message, ...]:
    """Parse messages. Each gets its index, and an id and a time if they are missing."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
        raise InvalidTypeError(f"messages must be a list, not {type(given).__name__}")
    read = tuple(_read_message(message, place, said_at) for place, message in enumerate(given, first_index))
    if len({message.message_id for message in read}) < len(read):
        raise InvalidValueError("two messages have the same message_id")
    return read


def _read_message(given: Message | Mapping[str, Any], place: int, said_at: datetime) -> Message:
    name = f"message {place}"
    if isinstance(given, Message):
        given = vars(given)
    if not isinstance(given, Mapping):
        raise InvalidTypeError(f"{name} must be an object, not {type(given).__name__}")
    if not given.keys() <= _FIELDS:
        unknown = sorted(map(str, given.keys() - _FIELDS))
        raise InvalidValueError(f"{name} has unknown fields: {', '.join(unknown)}")
    content, attachments = _read_content(name, given)
    message_id, created_at, speaker = map(given.get, ("message_id", "created_at", "name"))
    # Without a value there is nothing to check, and no name of it to make.
    if message_id is not None:
        message_id = check_key(f"message_id of {name}", message_id)
    if created_at is not None:
        created_at = read_time(f"created_at of {name}", created_at)
    if speaker is not None:
        speaker = read_name(f"name of {name}", speaker)
    return Message(
        _read_role(name, given.get("role")),
        content,
        message_id or new_id(),
        place,
        created_at or said_at,
        speaker,
        attachments,
    )


def _read_role(name: str, role: object) -> Role:
    if role not in _ROLES:
        raise InvalidValueError(f"{name} must have a role: one of {', '.join(_ROLES)}")
    return cast(Role, role)


def check_role(role: object) -> Role:
    """Check a stored role."""
    return _read_role("a message", role)


def read_role(name: str, given: object) -> Role:
    """Check a role that is an argument."""
    if given not in _ROLES:
        raise InvalidValueError(f"{name} must be one of {', '.join(_ROLES)}")
    return cast(Role, given)


def read_name(name: str, given: object) -> str | None:
    """Check the name of a participant: one line of printable text, or `None`."""
    if given is None:
        return None
    if not isinstance(given, str):
        raise InvalidTypeError(f"{name} must be text, not {type(given).__name__}")
    if not given.strip() or not given.isprintable():
        raise InvalidValueError(f"{name} must be one line of printable text")
    if len(given) > _LONGEST_NAME:
        raise InvalidValueError(f"{name} must not be longer than {_LONGEST_NAME} characters")
    return given


def _read_content(name: str, given: Mapping[str, Any]) -> tuple[str, tuple[Attachment, ...]]:
    """The text of a message, and its attachments."""
    content, attachments = given.get("content"), read_attachments(name, given.get("attachments"))
    if content is None:
        raise InvalidValueError(f"{name} must have content")
    if isinstance(content, list | tuple):
        if attachments:
            raise InvalidValueError(f"{name} must not have both content parts and attachments")
        content, attachments = read_parts(name, content)
    if not isinstance(content, str):
        raise InvalidTypeError(
            f"content of {name} must be text or a list of parts, not {type(content).__name__}"
        )
    if not content.strip():
        raise InvalidValueError(f"content of {name} must not be empty")
    return content, attachments


class _Unchanged(Enum):
    UNCHANGED = "UNCHANGED"

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = _Unchanged.UNCHANGED
"""The value for a setting that is not changed; `None` clears a setting."""
Unchanged: TypeAlias = Literal[_Unchanged.UNCHANGED]


@dataclass(frozen=True)
class ConversationSettings:
    """The settings of one conversation; `None` where the setting of the agent applies."""

    conversation_id: str
    memory_strategy: dict[str, Any] | None = field(default=None)
    memory_injection: bool | None = None
    provider_conversation_id: str | None = None
    version: int = 1
    """The number of the version, from 1 on."""


def strategy_to_column(given: Mapping[str, Any] | None) -> ColumnJSON | None:
    """A strategy as a column value: any JSON object."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InvalidTypeError(f"memory_strategy must be an object, not {type(given).__name__}")
    try:
        return json_to_column(dict(given), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValueError("memory_strategy must be a JSON object") from error


def injection_to_column(given: bool | None) -> str | None:
    """Whether memories are injected, as a column value."""
    if given is None:
        return None
    if not isinstance(given, bool):
        raise InvalidTypeError(f"memory_injection must be true or false, not {type(given).__name__}")
    return json.dumps(given)


def provider_id_to_column(given: str | None) -> str | None:
    """The provider's id of a conversation, as a column value."""
    return check_key("provider_conversation_id", given)
