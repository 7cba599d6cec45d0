"""Chats of applications as records: a conversation, and a session if the chat has branches."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from .kinds import ReadOptions
from .records import Record, Skipped, stable_id
from .tree import MAIN, lay_out

_LONGEST_TITLE = 500  # characters
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class ChatMessage:
    """A message of a chat, with the message that it follows."""

    message_id: str
    parent: str | None
    role: str = "user"
    content: Any = None
    """A text or content parts; `None` if there is nothing to import, as in a hidden message."""
    created_at: Any = None
    name: str | None = None


@dataclass(frozen=True)
class Chat:
    """A conversation of an application."""

    source: str
    source_id: str
    messages: Sequence[ChatMessage]
    created_at: Any = None
    updated_at: Any = None
    current: str | None = None
    title: str | None = None
    about: Mapping[str, Any] = field(default_factory=dict)


def records_of(chat: Chat, options: ReadOptions, where: str) -> Iterator[Record | Skipped]:
    """The records of a chat: the branch that was shown last as a conversation, and all as a session."""
    by_id: dict[str, ChatMessage] = {}
    for message in chat.messages:
        if message.message_id in by_id:
            yield Skipped(where, "two messages have the same id: the first is kept")
        by_id.setdefault(message.message_id, message)
    layout = lay_out({id_: each.parent for id_, each in by_id.items()}, chat.current)
    for problem in layout.problems:
        yield Skipped(where, problem)
    said = [id_ for id_ in layout.paths.get(MAIN, ()) if by_id[id_].content is not None]
    if not said:
        yield Skipped(where, "conversations without a message", is_lost=False)
        return
    conversation_id = stable_id(options.tenant, options.user_id, chat.source, chat.source_id)
    yield Record(
        "conversations", _conversation(chat, conversation_id, [by_id[id_] for id_ in said], options), where
    )
    items = [id_ for id_ in layout.order if by_id[id_].content is not None]
    place = {id_: number for number, id_ in enumerate(items)}
    paths = {branch: [place[id_] for id_ in path if id_ in place] for branch, path in layout.paths.items()}
    paths = {branch: path for branch, path in paths.items() if path}
    if len(paths) > 1:
        yield Record(
            "sessions", _session(chat, conversation_id, [by_id[id_] for id_ in items], paths, options), where
        )


def _conversation(
    chat: Chat, conversation_id: str, said: Sequence[ChatMessage], options: ReadOptions
) -> dict[str, Any]:
    about = {"source": chat.source, "source_id": chat.source_id, "title": chat.title, **chat.about}
    return {
        "conversation_id": conversation_id,
        "session_id": conversation_id,
        "user_id": options.user_id,
        "agent_id": options.agent_id,
        "created_at": chat.created_at,
        "metadata": {name: _short(value) for name, value in about.items() if value not in (None, "", [])},
        "messages": [_message(each) for each in said],
    }


def _short(value: Any) -> Any:
    return value[:_LONGEST_TITLE] if isinstance(value, str) else value


def _message(message: ChatMessage) -> dict[str, Any]:
    return {
        "message_id": message.message_id[:255],
        "role": message.role,
        "content": message.content,
        "created_at": message.created_at,
        "name": message.name,
    }


def _session(
    chat: Chat,
    session_id: str,
    messages: Sequence[ChatMessage],
    paths: Mapping[str, Sequence[int]],
    options: ReadOptions,
) -> dict[str, Any]:
    branches = [{"branch_id": name, "created_at": chat.created_at} for name in paths if name != MAIN]
    return {
        "session_id": session_id,
        "created_at": chat.created_at,
        "updated_at": chat.updated_at,
        "user_id": options.user_id,
        "agent_id": options.agent_id,
        "title": _short(chat.title),
        "items": [_item(each) for each in messages],
        "times": [each.created_at for each in messages],
        "paths": paths,
        "branches": branches,
    }


def _item(message: ChatMessage) -> dict[str, Any]:
    """A message as an item. Items have no role for tools: their output was part of the answer."""
    role = "assistant" if message.role == "tool" else message.role
    kind = "output_text" if role == "assistant" else "input_text"
    if isinstance(message.content, str):
        return {"role": role, "content": message.content}
    parts = [{**part, "type": kind} if part["type"] == "text" else part for part in message.content]
    return {"role": role, "content": parts}


def time_of(seconds: Any) -> str | None:
    """Seconds since 1970 as ISO 8601. A time out of the calendar becomes a text that is no time."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None if seconds is None else str(seconds)
    try:
        return (_EPOCH + timedelta(seconds=seconds)).isoformat()
    except (OverflowError, ValueError):
        return f"{seconds} seconds"


def text_or_none(value: Any) -> str | None:
    """A text that is not blank."""
    return value if isinstance(value, str) and value.strip() else None
