"""What was said, as text: each item by who said it, with images and files named and not sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ...items import (
    Item,
    is_call,
    is_output,
    is_reasoning,
    pair_calls,
    role_of,
    text_of,
    turn_starts,
    type_of,
)
from .sentences import well_formed

# Parts of a message that are not text, by what they are called.
_NAMED_PARTS = {
    "input_image": "image",
    "image": "image",
    "image_url": "image",
    "computer_screenshot": "image",
    "input_file": "file",
    "file": "file",
    "input_audio": "audio",
    "audio": "audio",
    "input_video": "video",
}


@dataclass(frozen=True)
class Entry:
    """A stretch of a transcript: who speaks, and what is said."""

    speaker: str
    text: str

    def render(self) -> str:
        """The entry as it is read; its text is set in, so that no line of it can pass for a speaker."""
        lines = "\n  ".join(self.text.splitlines())
        return f"[{self.speaker}]\n  {lines}\n"


def turn_entries(items: Sequence[Item]) -> list[list[Entry]]:
    """The entries of each turn, in their order; what has no words is left out."""
    names = tool_names(items)
    entries = [_entry(item, names.get(index, "")) for index, item in enumerate(items)]
    edges = [0, *turn_starts(items), len(items)]
    turns = ([entry for entry in entries[start:end] if entry] for start, end in pairwise(edges))
    return [turn for turn in turns if turn]


def tool_names(items: Sequence[Item]) -> dict[int, str]:
    """The name of the tool for each call and each output, by position."""
    names = {index: _tool_name(item) for index, item in enumerate(items) if _is_tool(item)}
    for call, outputs in pair_calls(items).outputs_of.items():
        names.update(dict.fromkeys(outputs, names[call]))
    return names


def words_of(item: Item) -> str:
    """The words of an item, with a name in place of each image or file."""
    content = item.get("output") if is_output(item) else item.get("content")
    if isinstance(content, list) and not is_reasoning(item):
        text = "\n".join(filter(None, map(_words_of_part, content)))
    else:
        text = text_of(item)
    return well_formed(text).strip()


def _entry(item: Item, tool: str) -> Entry | None:
    text = words_of(item)
    if is_output(item):
        return Entry(f"tool {tool}", text or "(no output)")
    if _is_tool(item):
        return Entry(f"assistant calls {tool}", text)
    speaker = "assistant, thinking" if is_reasoning(item) else role_of(item) or type_of(item) or "item"
    return Entry(_one_line(speaker), text) if text else None


def _is_tool(item: Item) -> bool:
    return is_call(item) or is_output(item) or type_of(item).endswith("_call")


def _tool_name(item: Item) -> str:
    name = item.get("name")
    return _one_line(name if isinstance(name, str) and name else type_of(item).split("_call")[0])


def _one_line(text: str) -> str:
    return " ".join(well_formed(text).split())


def _words_of_part(part: Any) -> str:
    words = text_of({"content": [part]})
    if not isinstance(part, dict) or part.get("type") not in _NAMED_PARTS:
        return words
    file_name = part.get("filename")
    named = _NAMED_PARTS[part["type"]] + (f" {file_name}" if isinstance(file_name, str) else "")
    return f"[{named}] {words}".strip()


def render(entries: Sequence[Entry]) -> str:
    """The entries as one text."""
    return "".join(entry.render() for entry in entries)
