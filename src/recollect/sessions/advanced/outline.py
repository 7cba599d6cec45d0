"""What the structure of a history says of an item, beside where it stands: its kind, and its tool."""

from typing import NamedTuple

from ...items import Item, decode_item, is_user_message
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
