"""What an item holds, taken apart: what was said or thought, asked of a tool, answered by it, attached."""

import json
from collections.abc import Iterable
from typing import Any

from ...items import Item, is_call, is_output, is_reasoning, text_of, type_of
from ..advanced.outline import TOOL_CALLS

# Where the kinds of calls keep what they ask for, and what came of it.
_ASKED = ("arguments", "input", "action", "actions", "operation", "code", "queries")
_ANSWERED = ("output", "outputs", "result", "results", "tools", "approve")
_NAMES_OF_CALLS = ("call_id", "approval_request_id", "id")
_ATTACHED = ("image", "audio", "video", "file", "screenshot")
_DRAWN = "image_generation_call"


def is_of_tool(item: Item) -> bool:
    """Whether this is a call or an output of a tool, also of one that the provider runs itself."""
    return is_call(item) or is_output(item) or type_of(item) in TOOL_CALLS


def words_of(item: Item) -> str | None:
    """The text of a message, or of anything that is neither a thought nor of a tool."""
    return None if is_of_tool(item) or is_reasoning(item) else text_of(item) or None


def thoughts_of(item: Item) -> str | None:
    """The text of a reasoning item."""
    return text_of(item) or None if is_reasoning(item) else None


def arguments_of(item: Item) -> str | None:
    """What a tool was called with: as the item has it if that is text, else as JSON."""
    if not is_of_tool(item) or is_output(item):
        return None
    asked = _first_of(item, _ASKED)
    return asked if asked is None or isinstance(asked, str) else _as_json(asked)


def output_of(item: Item) -> str | None:
    """What a tool gave back, pictures and files aside: as text if that is what it is, else as JSON."""
    if not is_of_tool(item) or type_of(item) == _DRAWN:
        return None
    answered = _first_of(item, _ANSWERED)
    if answered is None or isinstance(answered, str):
        return answered
    rest = [part for part in _parts(answered) if not _is_attachment(part)]
    if all(map(_is_text, rest)):
        return text_of({"content": rest}) or None
    return _as_json(rest if isinstance(answered, list) else answered)


def attachments_of(item: Item) -> tuple[dict[str, Any], ...]:
    """The images, sounds and files in an item, each as it stands there."""
    if type_of(item) == _DRAWN:
        return ({"type": _DRAWN, "result": item["result"]},) if item.get("result") else ()
    values = (item.get(field) for field in ("content", "output", "outputs"))
    return tuple(part for value in values for part in _parts(value) if _is_attachment(part))


def call_id_of(item: Item) -> str | None:
    """The id that a call and its output share; of a tool that needs no output, that of the item."""
    given = (item.get(name) for name in _NAMES_OF_CALLS) if is_of_tool(item) else ()
    return next((name for name in given if isinstance(name, str) and name), None)


def _first_of(item: Item, fields: Iterable[str]) -> Any:
    return next((item[field] for field in fields if item.get(field) is not None), None)


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _parts(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_attachment(part: object) -> bool:
    kind = part.get("type") if isinstance(part, dict) else None
    return isinstance(kind, str) and any(word in kind for word in _ATTACHED)


def _is_text(part: object) -> bool:
    kind = part.get("type") if isinstance(part, dict) else "text" if isinstance(part, str) else None
    return isinstance(kind, str) and kind.endswith("text")
