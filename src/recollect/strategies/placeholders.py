"""Placeholders for the outputs and arguments of tools that a view leaves out.

A placeholder names the tool, the call and the reason, in the shape that the type of item requires. Types
without a safe placeholder stay unchanged: screenshots (an image cannot hold the words), tools loaded by a
search (later calls rely on them), approvals, and signed programs. The same item always gets the same
placeholder.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..items import Item
from .values import Compact


class _Field(NamedTuple):
    """A field of an item that a placeholder replaces."""

    name: str
    what: str
    fill: Callable[[Any, str], Any]
    """Builds the new value from the old one and the words of the placeholder."""


def compact_items(items: Sequence[Item], end: int, strategy: Compact) -> list[Item]:
    """The items, with placeholders for tool outputs (and inputs, if configured) before the index `end`."""
    compacted = list(items)
    fields_of = _BOTH if strategy.clear_tool_inputs else _OUTPUTS
    is_selective = bool(strategy.include_tools or strategy.exclude_tools)
    names: dict[str, str] = {}
    for index in range(end):
        item = compacted[index]
        kind = item.get("type")
        if kind.__class__ is not str or kind not in _KINDS:
            continue
        call_id = _call_id(item)
        if kind in _NAMED:
            names[call_id] = _name_of(item)
        if kind in fields_of:
            name = _FIXED_NAMES.get(kind) or names.get(call_id) or _name_of(item)
            if not is_selective or _is_included(name, strategy):
                compacted[index] = _compact_item(item, fields_of[kind], f"{name}, call {call_id}")
    return compacted


def call_ids_of(items: Sequence[Item]) -> list[str]:
    """The ids of the calls among these items and of the calls whose outputs they are, in order."""
    found = (_call_id(item) for item in items if item.get("type") in _KIND_LIST)
    return list(dict.fromkeys(filter(None, found)))


def _compact_item(item: Item, fields: tuple[_Field, ...], call: str) -> Item:
    changed = item.copy()
    for name, what, fill in fields:
        value = item.get(name)
        if value:
            changed[name] = fill(value, f"[compacted: {what} of {call}, older turn]")
    return changed


def _is_included(name: str, strategy: Compact) -> bool:
    if strategy.include_tools and name not in strategy.include_tools:
        return False
    return name not in strategy.exclude_tools


def _call_id(item: Item) -> str:
    call_id = item.get("call_id") or item.get("id")
    return call_id if isinstance(call_id, str) else ""


def _name_of(item: Item) -> str:
    name = item.get("name")
    return name if isinstance(name, str) and name else "a tool"


# --- replacements for a value ---


def _text(_value: Any, words: str) -> str:
    return words


def _object(_value: Any, words: str) -> str:
    """A JSON object as text, as arguments must be."""
    return json.dumps({"compacted": words}, ensure_ascii=False)


def _chunks(value: Any, words: str) -> Any:
    """The exit statuses of the commands stay; their output goes."""
    if not isinstance(value, list) or not all(isinstance(chunk, dict) for chunk in value):
        return value
    first = [{**chunk, "stdout": words, "stderr": ""} for chunk in value[:1]]
    return first + [{**chunk, "stdout": "", "stderr": ""} for chunk in value[1:]]


def _within(change: Callable[[str], dict[str, Any]]) -> Callable[[Any, str], Any]:
    """A replacement of fields within an object. Fields that it does not have are not added."""

    def fill(value: Any, words: str) -> Any:
        if not isinstance(value, dict):
            return value
        return {**value, **{key: new for key, new in change(words).items() if key in value}}

    return fill


_OUTPUTS: dict[str, tuple[_Field, ...]] = {
    "function_call_output": (_Field("output", "output", _text),),
    "custom_tool_call_output": (_Field("output", "output", _text),),
    "shell_call_output": (_Field("output", "output", _chunks),),
    "local_shell_call_output": (_Field("output", "output", _object),),
    "apply_patch_call_output": (_Field("output", "output", _text),),
    "program_output": (_Field("result", "output", _text),),
    "mcp_call": (_Field("output", "output", _text),),
}
_INPUTS: dict[str, tuple[_Field, ...]] = {
    "function_call": (_Field("arguments", "input", _object),),
    "custom_tool_call": (_Field("input", "input", _text),),
    "shell_call": (_Field("action", "input", _within(lambda words: {"commands": [words]})),),
    "local_shell_call": (_Field("action", "input", _within(lambda words: {"command": [words], "env": {}})),),
    "apply_patch_call": (_Field("operation", "input", _within(lambda words: {"diff": words})),),
    "mcp_call": (_Field("arguments", "input", _object),),
}
_BOTH = {kind: _OUTPUTS.get(kind, ()) + _INPUTS.get(kind, ()) for kind in (*_OUTPUTS, *_INPUTS)}
_KINDS = frozenset(_BOTH)
_KIND_LIST = tuple(_BOTH)  # a tuple: a type that is not hashable can be looked up in it
_NAMED = {"function_call", "custom_tool_call", "mcp_call"}
# The names of tools without a name in their items, also in `include_tools` and `exclude_tools`.
_FIXED_NAMES = {
    "shell_call": "shell",
    "shell_call_output": "shell",
    "local_shell_call": "local_shell",
    "local_shell_call_output": "local_shell",
    "apply_patch_call": "apply_patch",
    "apply_patch_call_output": "apply_patch",
    "program_output": "program",
}
