"""Sentences and limits: where a text may be cut, and how to keep it within so many tokens."""

import re
from collections.abc import Iterator

from ...items import estimate_text_tokens

CUT_MARK = " [cut to fit]"
_SHORT_MARK = "…"
MOST_CHARACTERS_PER_TOKEN = 4  # as the estimate counts

# Western ends count where a space follows, so that "3.14" is one word; Chinese ones stand for themselves.
_END = re.compile(r"[.!?]+[\"'”’)\]]*(?=\s|$)|[。！？；…]+[”’」』）]*|\n+")
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|e\.g|i\.e|approx|No|Inc|Ltd)|\b[A-Z])\.$")


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, in English or Chinese; a line ends one too."""
    starts = [0, *sentence_ends(text)]
    pieces = (text[start:end].strip() for start, end in zip(starts, [*starts[1:], len(text)], strict=True))
    return [piece for piece in pieces if piece]


def sentence_ends(text: str) -> Iterator[int]:
    """The positions after the ends of sentences."""
    for match in _END.finditer(text):
        if match[0] != "." or not _ABBREVIATION.search(text, max(0, match.end() - 8), match.end()):
            yield match.end()


def cut_to_fit(text: str, max_tokens: int, *, is_whole: bool = True) -> str:
    """A text of at most so many tokens, that ends with a sentence, and with a mark if it was cut.

    One that is not whole was cut before, in the middle of a sentence.
    """
    if is_whole and estimate_text_tokens(text) <= max_tokens:
        return text
    mark = CUT_MARK if max_tokens >= 4 * estimate_text_tokens(CUT_MARK) else _SHORT_MARK
    room = prefix_within(text, max_tokens - estimate_text_tokens(mark))
    # What follows the room decides whether a dot in it ends a sentence.
    ends = [end for end in sentence_ends(text[: room + 100]) if end <= room]
    return text[: ends[-1] if ends else end_of_word(text, room)].rstrip() + mark


def clip(text: str, max_tokens: int) -> str:
    """The beginning of a text that is too long, in whole words."""
    if estimate_text_tokens(text) <= max_tokens:
        return text
    room = prefix_within(text, max_tokens - estimate_text_tokens(_SHORT_MARK))
    return text[: end_of_word(text, room)].rstrip() + _SHORT_MARK


def prefix_within(text: str, max_tokens: int) -> int:
    """How many characters, from the start, are at most so many tokens."""
    low, high = 0, min(len(text), max(max_tokens, 0) * MOST_CHARACTERS_PER_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_text_tokens(text[:middle]) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return low


def end_of_word(text: str, position: int) -> int:
    """Where to cut, at a position or a little before it: the position itself where there are no spaces."""
    if position >= len(text) or text[position].isspace():
        return position
    space = text.rfind(" ", max(0, position - 30), position)
    return space if space > 0 else position
