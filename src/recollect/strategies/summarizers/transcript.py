"""What was said, as text: each item by who said it, with images and files named and not sent."""

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

_SMALLEST = 200  # characters: what is too long although it is shorter, is so for another reason


def split_parts(items: Sequence[Item], max_tokens: int, before: Sequence[Entry] = ()) -> list[Part]:
    """The transcript in parts of at most so many tokens, cut between turns wherever that is possible."""
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
    """Two parts out of one; the same one where it cannot be made smaller."""
    if len(part) > 1:
        middle = len(part) // 2
        return [part[:middle], part[middle:]]
    text = part[0].text
    if len(text) < _SMALLEST:
        return [part]
    first, rest = _cut(part[0], len(text) // 2)
    return [[first], [rest]]


def _blocks(turns: list[Part], max_tokens: int) -> Iterator[Part]:
    """What is kept together: turns, or the entries of one that is too long, or pieces of such an entry."""
    for turn in turns:
        if _tokens(turn) <= max_tokens:
            yield turn
        else:
            for entry in turn:
                yield from ([piece] for piece in _slices(entry, max_tokens))


def _slices(entry: Entry, max_tokens: int) -> Iterator[Entry]:
    """An entry in pieces that fit; their texts in a row are its text."""
    while len(entry.text) > 1 and _is_over(entry, max_tokens):
        size = max(1, prefix_within(entry.text, max_tokens))
        # Beside its text a piece has its speaker, and a margin for every line.
        while _tokens([Entry(entry.speaker, entry.text[:size])]) > max_tokens and size > 1:
            size = size * 4 // 5
        piece, entry = _cut(entry, size)
        yield piece
    yield entry


def _is_over(entry: Entry, max_tokens: int) -> bool:
    # A token has at most so many characters: what is surely too long need not be counted, again and again.
    return len(entry.text) > max_tokens * MOST_CHARACTERS_PER_TOKEN or _tokens([entry]) > max_tokens


def _cut(entry: Entry, size: int) -> tuple[Entry, Entry]:
    position = end_of_word(entry.text, size)
    speaker = entry.speaker.removesuffix(", continued")
    return Entry(entry.speaker, entry.text[:position]), Entry(f"{speaker}, continued", entry.text[position:])


def _tokens(part: Part) -> int:
    return estimate_text_tokens(render(part))
