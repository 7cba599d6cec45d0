"""The shape of an item: its type, role, text and fingerprint, and the turns that items form.

A turn starts at a user message and ends before the next one. Items before the first user message are turn 0.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

Item: TypeAlias = dict[str, Any]

# The output type of each call type. Hosted tools that the provider runs itself, such as web search, have
# their result inside the call and need no output.
OUTPUT_TYPE_OF_CALL = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "shell_call": "shell_call_output",
    "local_shell_call": "local_shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "tool_search_call": "tool_search_output",
    "program": "program_output",
    "mcp_approval_request": "mcp_approval_response",
}
# Items, beside messages and outputs, that no model creates.
_CALLER_TYPES = ("", "item_reference", "additional_tools", "compaction_trigger", "configuration_update")
# The fields with the text of items other than messages and function calls, at any depth.
_TEXT_FIELDS = {
    "shell_call": ("action",),
    "shell_call_output": ("output",),
    "local_shell_call": ("action",),
    "apply_patch_call": ("operation",),
    "computer_call": ("action", "actions"),
    "tool_search_call": ("arguments",),
    "tool_search_output": ("tools",),
    "program": ("code",),
    "program_output": ("result",),
}
CALL_TYPE_OF_OUTPUT = {output: call for call, output in OUTPUT_TYPE_OF_CALL.items()}


def type_of(item: Item) -> str:
    """Return the type of an item. A message may have no `type` field."""
    kind = item.get("type")
    if isinstance(kind, str):
        return kind
    return "message" if "role" in item else ""


def role_of(item: Item) -> str | None:
    """Return the role of a message, or `None` for other items."""
    role = item.get("role")
    return role if isinstance(role, str) and type_of(item) == "message" else None


def is_user_message(item: Item) -> bool:
    """Whether this is a user message. Each one starts a turn."""
    return role_of(item) == "user"


def is_call(item: Item) -> bool:
    """Whether this is a tool call that needs an output item."""
    return type_of(item) in OUTPUT_TYPE_OF_CALL


def is_output(item: Item) -> bool:
    """Whether this is the output of a tool call."""
    return type_of(item) in CALL_TYPE_OF_OUTPUT


def is_reasoning(item: Item) -> bool:
    """Whether this is a reasoning item."""
    return type_of(item) == "reasoning"


def is_from_model(item: Item) -> bool:
    """Whether the model created this item. A reasoning item belongs to such items."""
    if type_of(item) == "message":
        return role_of(item) == "assistant"
    return not is_output(item) and type_of(item) not in _CALLER_TYPES


def text_of(item: Item) -> str:
    """Return the text of an item: of a message, a call's arguments, an output, or a reasoning summary."""
    return "\n".join(_texts(item))


def _texts(item: Item) -> Iterator[str]:
    kind = type_of(item)
    if kind in _TEXT_FIELDS:
        for field in _TEXT_FIELDS[kind]:
            yield from _strings_in(item.get(field))
    elif kind == "reasoning":
        yield from _texts_in(item.get("summary"))
        yield from _texts_in(item.get("content"))
    else:
        for field in ("content", "arguments", "input", "output"):
            yield from _texts_in(item.get(field))


def _strings_in(value: object) -> Iterator[str]:
    """Yield every string within a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings_in(inner)


def _texts_in(value: object) -> Iterator[str]:
    """Yield a plain text, or the texts of a list of parts: `text`, `refusal` or `transcript`."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _texts_in_part(part)
    elif isinstance(value, dict):
        yield from _texts_in_part(value)


def _texts_in_part(part: object) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict):
        for field in ("text", "refusal", "transcript"):
            if isinstance(part.get(field), str):
                yield part[field]


# The Agents SDK gives this id to items of models without ids: it identifies nothing.
PLACEHOLDER_IDS = ("", "__fake_id__")


def fingerprint(item: Item) -> str:
    """Return type and id if the item has a stable id, else a hash of its canonical JSON."""
    for field in ("id", "call_id"):
        stable = item.get(field)
        if isinstance(stable, str) and stable not in PLACEHOLDER_IDS:
            return f"{type_of(item)}:{stable}"
    canonical = json.dumps({**item, "type": type_of(item)}, sort_keys=True, separators=(",", ":"))
    return f"{type_of(item)}#{hashlib.sha256(canonical.encode()).hexdigest()}"


def turn_starts(items: Sequence[Item]) -> list[int]:
    """Return the indexes of the user messages: the starts of turn 1, 2, …"""
    return [index for index, item in enumerate(items) if is_user_message(item)]


def split_turns(items: Sequence[Item]) -> list[list[Item]]:
    """Return the items of each turn. Index 0 has the items before the first user message, possibly none."""
    edges = [0, *turn_starts(items), len(items)]
    return [list(items[start:end]) for start, end in pairwise(edges)]
