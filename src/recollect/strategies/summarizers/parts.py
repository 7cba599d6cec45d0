"""A transcript that is too long for one request, in parts: every word of it is in one of them."""

from collections.abc import Iterator, Sequence

from ...items import Item, estimate_text_tokens
from .sentences import MOST_CHARACTERS_PER_TOKEN, end_of_word, prefix_within
from .transcript import Entry, render, turn_entries

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
