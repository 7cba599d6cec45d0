"""A conversation and its messages, as they are recorded and told."""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Final, Literal, Self, TypeAlias, cast, get_args

from ..errors import InvalidTypeError, InvalidValueError
from ..sql.columns import ColumnJSON, check_id, json_to_column
from .content_parts import Attachment, read_attachments, read_parts
from .metadata import read_metadata
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
    """The participant who said it, or the tool, where one is named."""
    attachments: tuple[Attachment, ...] = field(default=(), repr=False, hash=False)
    """The content parts that are not text, with references in place of inline data."""

    @property
    def speaker(self) -> str:
        """The name of the participant, or the role where no name is given."""
        return self.name or self.role

    def is_from(self, user_id: str) -> bool:
        """Whether the user of the conversation said it: with role `user`, and under no other name."""
        return self.role == "user" and (self.name is None or self.name.casefold() == user_id.casefold())

    def to_dict(self) -> dict[str, Any]:
        """The message as JSON tells it."""
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
    """What an agent and a user said to each other.

    Messages are given as dicts with `role` and `content`; what else they need is made. The content is a text
    or a list of content parts. `metadata` is a small JSON object of the caller's.
    """

    agent_id: str
    user_id: str
    messages: tuple[Message, ...] = field(repr=False)
    session_id: str
    conversation_id: str
    created_at: datetime
    memory_id: str | None
    pipeline_result: dict[str, Any] | None = field(repr=False)
    closed_at: datetime | None
    """When it was closed: nothing can be added to it since."""
    metadata: dict[str, Any] = field(repr=False)

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
    ) -> None:
        self.agent_id = check_owner("agent_id", agent_id)
        self.user_id = check_owner("user_id", user_id)
        self.session_id = check_key("session_id", session_id) or str(uuid.uuid4())
        self.conversation_id = check_key("conversation_id", conversation_id) or str(uuid.uuid4())
        self.created_at = read_time("created_at", created_at) or now()
        self.memory_id = check_key("memory_id", memory_id)
        self.pipeline_result = pipeline_result
        self.closed_at = read_time("closed_at", closed_at)
        self.metadata = read_metadata("metadata", metadata)
        self.messages = read_messages(messages, self.created_at)

    @property
    def turn_count(self) -> int:
        """The number of messages."""
        return len(self.messages)

    @property
    def summary(self) -> str:
        """A line that says what the conversation starts with."""
        return summarize(self.turn_count, self.messages)

    def to_dict(self) -> dict[str, Any]:
        """The conversation as JSON tells it, with its messages also as `conversation_data.messages`."""
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
            "messages": messages,
            "conversation_data": {"messages": messages},
            "pipeline_result": self.pipeline_result,
            "summary": self.summary,
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Self:
        """A conversation from its JSON: messages as such, in `conversation_data`, or that as a bare list."""
        if not isinstance(told, Mapping):
            raise InvalidTypeError(f"a conversation must be an object, not {type(told).__name__}")
        return cls(
            agent_id=told.get("agent_id", ""),
            user_id=told.get("user_id", ""),
            messages=messages_in(told),
            session_id=told.get("session_id"),
            conversation_id=told.get("conversation_id"),
            created_at=told.get("created_at"),
            memory_id=told.get("memory_id"),
            pipeline_result=told.get("pipeline_result"),
            metadata=told.get("metadata"),
        )


def messages_in(told: Mapping[str, Any]) -> Sequence[Any]:
    """The messages in the JSON of a conversation."""
    data = told if told.get("conversation_data") is None else told["conversation_data"]
    if not isinstance(data, list | Mapping):
        raise InvalidTypeError(f"conversation_data must be an object or a list, not {type(data).__name__}")
    return data if isinstance(data, list) else data.get("messages") or ()


def summarize(count: int, messages: Iterable[Message]) -> str:
    """The automatic summary of a conversation of so many messages, of which the first are given."""
    return summarize_words(count, next((each.content for each in messages if each.role == "user"), None))


def summarize_words(count: int, first: str | None) -> str:
    """The same, given what the user said first, if they said anything."""
    if not count:
        return "Empty conversation"
    return f"Conversation with {count} turns: {(first or 'No user message')[:_PREVIEW]}..."


def check_owner(name: str, value: object) -> str:
    """The id of an agent or a user, which must be given: any text that is not empty."""
    if value is None:
        raise InvalidValueError(f"{name} must be given")
    return check_id(name, value)


def check_key(name: str, value: object) -> str | None:
    """An id that may be left out, short enough for every index."""
    if value is None:
        return None
    if len(check_id(name, value)) > _LONGEST_KEY:
        raise InvalidValueError(f"{name} must not be longer than {_LONGEST_KEY} characters")
    return str(value)


def read_messages(
    given: Sequence[Message | Mapping[str, Any]], said_at: datetime, first_index: int = 0
) -> tuple[Message, ...]:
    """Messages as they are given, each with an id, its place, and a time."""
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
    if unknown := sorted(map(str, given.keys() - _FIELDS)):
        raise InvalidValueError(f"{name} has fields that are not kept: {', '.join(unknown)}")
    message_id = check_key(f"message_id of {name}", given.get("message_id"))
    content, attachments = _read_content(name, given)
    return Message(
        _read_role(name, given.get("role")),
        content,
        message_id or str(uuid.uuid4()),
        place,
        read_time(f"created_at of {name}", given.get("created_at")) or said_at,
        read_name(f"name of {name}", given.get("name")),
        attachments,
    )


def _read_role(name: str, role: object) -> Role:
    if role not in _ROLES:
        raise InvalidValueError(f"{name} must have a role, which is one of {', '.join(_ROLES)}")
    return cast(Role, role)


def check_role(role: object) -> Role:
    """A role as it is stored."""
    return _read_role("a message", role)


def read_name(name: str, given: object) -> str | None:
    """The name of a participant: one line of printable text, or none."""
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
"""What is given for a setting that stays as it is; `None` clears it."""
Unchanged: TypeAlias = Literal[_Unchanged.UNCHANGED]


@dataclass(frozen=True)
class ConversationSettings:
    """What holds for one conversation; `None` where it is left to the agent."""

    conversation_id: str
    memory_strategy: dict[str, Any] | None = field(default=None)
    memory_injection: bool | None = None
    provider_conversation_id: str | None = None
    version: int = 1
    """Counts the changes, from 1 on."""


def strategy_to_column(given: Mapping[str, Any] | None) -> ColumnJSON | None:
    """A strategy, as it is stored: any JSON object."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InvalidTypeError(f"memory_strategy must be an object, not {type(given).__name__}")
    try:
        return json_to_column(dict(given), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValueError("memory_strategy must be an object as JSON has it") from error


def injection_to_column(given: bool | None) -> str | None:
    """Whether memories are injected, as it is stored."""
    if given is None:
        return None
    if not isinstance(given, bool):
        raise InvalidTypeError(f"memory_injection must be true or false, not {type(given).__name__}")
    return json.dumps(given)


def provider_id_to_column(given: str | None) -> str | None:
    """The id that the provider has for a conversation."""
    return check_key("provider_conversation_id", given)
