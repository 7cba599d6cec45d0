"""The kind, tool and turn of an item, and the user turns of a branch as callers see them."""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...items import Item, decode_item, is_user_message, text_of
from ...items.shapes import is_output, role_of, type_of

TOOL_CALLS = (
    "tool_call",
    "function_call",
    "custom_tool_call",
    "computer_call",
    "file_search_call",
    "web_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "tool_search_call",
    "mcp_call",
    "mcp_approval_request",
    "shell_call",
    "local_shell_call",
    "apply_patch_call",
)


class Outline(NamedTuple):
    """An item in two words."""

    kind: str
    tool: str | None
    starts_turn: bool


_UNREADABLE = Outline("other", None, False)


def outline_of(stored: bytes | str) -> Outline:
    """The outline of a stored item; what is no item has one too, for it has a place in the history."""
    item = decode_item(stored)
    if item is None:
        return _UNREADABLE
    return Outline(_storable(_kind_of(item)) or "other", _storable(_tool_of(item)), is_user_message(item))


def _kind_of(item: Item) -> str:
    role = role_of(item)
    if role in ("user", "assistant"):
        return role
    kind = item.get("type")
    return kind if isinstance(kind, str) else ""


def _tool_of(item: Item) -> str:
    """The name of the tool that an item calls or answers for, as far as the item itself says."""
    kind = type_of(item)
    if kind == "message":
        return ""
    if kind in ("tool_search_call", "tool_search_output"):
        return "tool_search"
    name, server = _text(item, "name"), _text(item, "server_label")
    owner = server or _text(item, "namespace")
    if not name:
        return owner or ("" if is_output(item) or kind not in TOOL_CALLS else kind)
    # A namespace of the tool's own name is one that the SDK has made up; a server may have that name too.
    return f"{owner}.{name}" if owner and (server or owner != name) else name


def _text(item: Item, field: str) -> str:
    value = item.get(field)
    return value if isinstance(value, str) else ""


def _storable(text: str) -> str | None:
    """A text as every database takes it: without NUL and halves of characters; `None` for none at all."""
    return text.replace("\0", "").encode("utf-8", "replace").decode() or None


_PREVIEW = 100  # characters
_LONGEST_PATTERN = 1000  # characters


class UserTurn(NamedTuple):
    """A turn: its number, the user message it starts with, and when that was stored."""

    turn: int
    item: Item
    timestamp: Any


def describe_turns(turns: Sequence[UserTurn]) -> list[dict[str, Any]]:
    """Each turn as a dict: `turn`, `content` (shortened), `full_content`, `timestamp`, `can_branch`."""
    return [_described(turn, _PREVIEW) for turn in turns]


def matching_turns(turns: Sequence[UserTurn], text: str) -> list[dict[str, Any]]:
    """The turns whose user message contains a text, in any case, as dicts with the whole `content`.

    Every turn contains the empty text.
    """
    if not isinstance(text, str):
        raise ValueError(f"the text to find must be a string, not {text!r}")
    pattern = re.compile(re.escape(text), re.IGNORECASE)
    return [_described(turn) for turn in turns if pattern.search(text_of(turn.item))]


def pattern_for(text: str) -> str:
    """A pattern that the stored form of every turn with this text matches, for the database to choose by.

    JSON may write other characters than these in several ways, and databases refuse patterns that are very
    long: then the pattern matches everything.
    """
    is_plain = text.isascii() and text.isprintable() and '"' not in text and "\\" not in text
    if not is_plain or len(text) > _LONGEST_PATTERN:
        return "%"
    escaped = text.replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _described(turn: UserTurn, length: int | None = None) -> dict[str, Any]:
    content = turn.item.get("content", "")
    shown = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return {
        "turn": turn.turn,
        "content": shown if length is None or len(shown) <= length else shown[:length] + "...",
        "full_content": content,
        "timestamp": turn.timestamp,
        "can_branch": True,
    }
