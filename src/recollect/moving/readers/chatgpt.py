"""The data export of ChatGPT: `conversations.json`, alone or in its zip archive."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import ImportFormatError
from ..chats import Chat, ChatMessage, records_of, text_or_none, time_of
from ..kinds import ReadOptions
from ..records import Read, Skipped
from ..sources import Value, read_arrays

_IN_ARCHIVE = r"conversations(-\d+)?\.json"
_ROLES = ("user", "assistant", "tool")
_HIDDEN = (
    "user_editable_context",
    "model_editable_context",
    "thoughts",
    "reasoning_recap",
    "app_pairing_content",
)


def open_source(source: str, options: ReadOptions) -> Read:
    """Read an export."""
    for value in read_arrays(Path(source), _IN_ARCHIVE):
        yield from [value] if isinstance(value, Skipped) else _records(value, options)


def _records(value: Value, options: ReadOptions) -> Read:
    chat = value.data
    if isinstance(chat, Mapping) and "chat_messages" in chat:
        raise ImportFormatError("this is an export of Claude: use the kind claude")
    if not isinstance(chat, Mapping) or not isinstance(chat.get("mapping"), Mapping):
        yield Skipped(value.where, "it is not a conversation of ChatGPT: it has no mapping")
        return
    source_id = text_or_none(chat.get("conversation_id")) or text_or_none(chat.get("id"))
    yield from records_of(
        Chat(
            "chatgpt",
            source_id or f"{chat.get('title')} {chat.get('create_time')}",
            list(_messages(chat["mapping"])),
            time_of(chat.get("create_time")),
            time_of(chat.get("update_time")),
            text_or_none(chat.get("current_node")),
            text_or_none(chat.get("title")),
            {
                "model": text_or_none(chat.get("default_model_slug")),
                "gizmo": text_or_none(chat.get("gizmo_id")),
            },
        ),
        options,
        value.where,
    )


def _messages(mapping: Mapping[str, Any]) -> Iterator[ChatMessage]:
    for node_id, node in mapping.items():
        node = node if isinstance(node, Mapping) else {}
        message = node.get("message")
        parent = text_or_none(node.get("parent"))
        if not isinstance(message, Mapping):
            yield ChatMessage(node_id, parent)
            continue
        given = message.get("author")
        author = given if isinstance(given, Mapping) else {}
        role = author.get("role")
        content = _content(message.get("content"), message) if role in _ROLES else None
        name = text_or_none(author.get("name")) if role == "tool" else None
        created = time_of(message.get("create_time"))
        yield ChatMessage(node_id, parent, str(role), content, created, name)


def _content(content: Any, message: Mapping[str, Any]) -> Any:
    """The text of a message, or its parts if files or images belong to it. These are kept as references."""
    if not isinstance(content, Mapping) or content.get("content_type") in _HIDDEN:
        return None
    parts = list(_parts(content))
    attached = message.get("metadata")
    files = attached.get("attachments") if isinstance(attached, Mapping) else None
    given = files if isinstance(files, list) else ()
    parts += [{"type": "file", **_reference(file)} for file in given if isinstance(file, Mapping)]
    if all(part["type"] == "text" for part in parts):
        return text_or_none("\n".join(part["text"] for part in parts))
    return parts[:100]


def _parts(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    given = content.get("parts")
    if not isinstance(given, list):
        text = text_or_none(content.get("text")) or text_or_none(content.get("result"))
        given = [text] if text else []
    for part in given:
        if isinstance(part, str):
            if part.strip():
                yield {"type": "text", "text": part}
        elif isinstance(part, Mapping):
            if text := text_or_none(part.get("text")):  # what was spoken
                yield {"type": "text", "text": text}
            else:
                yield {"type": str(part.get("content_type") or "part")[:64], **_reference(part)}


def _reference(part: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a file that name it, without its contents."""
    names = ("id", "name", "asset_pointer", "mime_type", "mimeType", "size", "size_bytes", "width", "height")
    return {name: part[name] for name in names if isinstance(part.get(name), str | int | float)}
