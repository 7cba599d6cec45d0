"""The transcript of items as text: each with its speaker. Images and files are named, not included.

A transcript that is too long for one request is split into parts. No text is left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ...items import (
    Item,
    estimate_text_tokens,
    is_call,
    is_output,
    is_reasoning,
    pair_calls,
    role_of,
    text_of,
    turn_starts,
    type_of,
)
from ...models.text import to_valid_unicode
from .sentences import MOST_CHARACTERS_PER_TOKEN, end_of_word, prefix_within

# The names of message parts that are not text.
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
    """One entry of a transcript: the speaker and the text."""

    speaker: str
    text: str

    def render(self) -> str:
        """The entry as text. The text is indented, so that no line of it can look like a speaker."""
        lines = "\n  ".join(self.text.splitlines())
        return f"[{self.speaker}]\n  {lines}\n"


def turn_entries(items: Sequence[Item]) -> list[list[Entry]]:
    """The entries of each turn. Items without text are left out."""
    names = tool_names(items)
    entries = [_entry(item, names.get(index, "")) for index, item in enumerate(items)]
    edges = [0, *turn_starts(items), len(items)]
    turns = ([entry for entry in entries[start:end] if entry] for start, end in pairwise(edges))
    return [turn for turn in turns if turn]


def tool_names(items: Sequence[Item]) -> dict[int, str]:
    """The name of the tool of each call and output, by index."""
    names = {index: _tool_name(item) for index, item in enumerate(items) if _is_tool(item)}
    for call, outputs in pair_calls(items).outputs_of.items():
        names.update(dict.fromkeys(outputs, names[call]))
    return names


def words_of(item: Item) -> str:
    """The text of an item, with a name in place of each image or file."""
    content = item.get("output") if is_output(item) else item.get("content")
    if isinstance(content, list) and not is_reasoning(item):
        text = "\n".join(filter(None, map(_words_of_part, content)))
    else:
        text = text_of(item)
    return to_valid_unicode(text).strip()


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
    return " ".join(to_valid_unicode(text).split())


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


Part = list[Entry]

_SMALLEST = 200  # characters: if a model rejects even this as too long, the reason is another


def split_parts(items: Sequence[Item], max_tokens: int, before: Sequence[Entry] = ()) -> list[Part]:
    """Split the transcript into parts of at most `max_tokens` tokens, between turns if possible."""
    parts: list[Part] = []
    left = 0
    for block in _blocks([[entry] for entry in before] + turn_entries(items), max_tokens):
        size = _tokens(block)
        if size > left:
            parts.append([])
            left = max_tokens
        parts[-1] += block
        left -= size
    return parts


def halve(part: Part) -> list[Part]:
    """Split a part in two; return it alone if it cannot be split further."""
    if len(part) > 1:
        middle = len(part) // 2
        return [part[:middle], part[middle:]]
    text = part[0].text
    if len(text) < _SMALLEST:
        return [part]
    first, rest = _cut(part[0], len(text) // 2)
    return [[first], [rest]]


def _blocks(turns: list[Part], max_tokens: int) -> Iterator[Part]:
    """The smallest units to distribute: turns, or entries of a long turn, or pieces of a long entry."""
    for turn in turns:
        if _tokens(turn) <= max_tokens:
            yield turn
        else:
            for entry in turn:
                yield from ([piece] for piece in _slices(entry, max_tokens))


def _slices(entry: Entry, max_tokens: int) -> Iterator[Entry]:
    """Split an entry into pieces that fit. Their texts together are its text."""
    while len(entry.text) > 1 and _is_over(entry, max_tokens):
        size = max(1, prefix_within(entry.text, max_tokens))
        # A piece also has its speaker, and an indentation in every line.
        while _tokens([Entry(entry.speaker, entry.text[:size])]) > max_tokens and size > 1:
            size = size * 4 // 5
        piece, entry = _cut(entry, size)
        yield piece
    yield entry


def _is_over(entry: Entry, max_tokens: int) -> bool:
    # A token has at most this many characters, so a very long text need not be counted repeatedly.
    return len(entry.text) > max_tokens * MOST_CHARACTERS_PER_TOKEN or _tokens([entry]) > max_tokens


def _cut(entry: Entry, size: int) -> tuple[Entry, Entry]:
    position = end_of_word(entry.text, size)
    speaker = entry.speaker.removesuffix(", continued")
    return Entry(entry.speaker, entry.text[:position]), Entry(f"{speaker}, continued", entry.text[position:])


def _tokens(part: Part) -> int:
    return estimate_text_tokens(render(part))
