"""The data export of Claude: `conversations.json`, alone or in its zip archive."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import ImportFormatError
from ..chats import Chat, ChatMessage, records_of, text_or_none
from ..kinds import ReadOptions
from ..records import Read, Skipped
from ..sources import Value, read_arrays

_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_BEFORE_ALL = "00000000-0000-4000-8000-000000000000"  # the parent of the first message


def open_source(source: str, options: ReadOptions) -> Read:
    """Read an export."""
    for value in read_arrays(Path(source), r"conversations(-\d+)?\.json"):
        yield from [value] if isinstance(value, Skipped) else _records(value, options)


def _records(value: Value, options: ReadOptions) -> Read:
    chat = value.data
    if isinstance(chat, Mapping) and "mapping" in chat:
        raise ImportFormatError("this is an export of ChatGPT: use the kind chatgpt")
    if not isinstance(chat, Mapping) or not isinstance(chat.get("chat_messages"), list):
        yield Skipped(value.where, "it is not a conversation of Claude: it has no chat_messages")
        return
    messages = list(_messages(chat["chat_messages"]))
    yield from records_of(
        Chat(
            "claude",
            str(chat.get("uuid") or f"{chat.get('name')} {chat.get('created_at')}"),
            messages,
            chat.get("created_at"),
            chat.get("updated_at"),
            text_or_none(chat.get("current_leaf_message_uuid"))
            or (messages[-1].message_id if messages else None),
            text_or_none(chat.get("name")),
            {"model": text_or_none(chat.get("model")), "project": _name_of(chat.get("project"))},
        ),
        options,
        value.where,
    )


def _name_of(project: Any) -> str | None:
    return text_or_none(project.get("name")) if isinstance(project, Mapping) else None


def _messages(given: list[Any]) -> Iterator[ChatMessage]:
    """The messages. Older exports name no parents: there, each follows the one before."""
    before: str | None = None
    for place, message in enumerate(given):
        if not isinstance(message, Mapping):
            continue
        message_id = str(message.get("uuid") or f"message-{place}")
        parent = text_or_none(message.get("parent_message_uuid")) or before
        role = _ROLES.get(str(message.get("sender")))
        content = _content(message) if role else None
        created = message.get("created_at")
        yield ChatMessage(
            message_id, None if parent == _BEFORE_ALL else parent, role or "system", content, created
        )
        before = message_id


def _content(message: Mapping[str, Any]) -> Any:
    """The text of a message, or its parts if files or tools belong to it. Files are kept as references."""
    blocks = message.get("content") if isinstance(message.get("content"), list) else []
    parts = list(_parts(blocks or []))
    if not any(part["type"] == "text" for part in parts) and (text := text_or_none(message.get("text"))):
        parts.insert(0, {"type": "text", "text": text})
    for name in ("attachments", "files"):
        given = message.get(name) if isinstance(message.get(name), list) else []
        parts += [{"type": "file", **_reference(file)} for file in given or () if isinstance(file, Mapping)]
    if all(part["type"] == "text" for part in parts):
        return text_or_none("\n\n".join(part["text"] for part in parts))
    return parts[:100]


def _parts(blocks: list[Any]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        if not isinstance(block, Mapping):
            continue
        kind = block.get("type")
        if kind == "text" and (text := text_or_none(block.get("text"))):
            yield {"type": "text", "text": text}
        elif kind in ("tool_use", "tool_result"):
            yield {"type": kind, "name": str(block.get("name") or "")[:255]}


def _reference(file: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that name a file. Text that was extracted from it becomes its size and hash."""
    names = ("file_name", "file_type", "file_size", "file_kind", "file_uuid", "id", "extracted_content")
    return {name: file[name] for name in names if isinstance(file.get(name), str | int) and file[name] != ""}
