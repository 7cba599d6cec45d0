"""Sentences and token limits: where a text may be cut, and how to shorten it."""

import re
from collections.abc import Iterator

from ...items import estimate_text_tokens

CUT_MARK = " [cut to fit]"
_SHORT_MARK = "…"
MOST_CHARACTERS_PER_TOKEN = 4  # in the estimate of tokens

# A Western mark ends a sentence only before a space, so that "3.14" is one word. A Chinese mark always does.
_END = re.compile(r"[.!?]+[\"'”’)\]]*(?=\s|$)|[。！？；…]+[”’」』）]*|\n+")
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|e\.g|i\.e|approx|No|Inc|Ltd)|\b[A-Z])\.$")


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences, in English or Chinese. A line break also ends a sentence."""
    starts = [0, *sentence_ends(text)]
    pieces = (text[start:end].strip() for start, end in zip(starts, [*starts[1:], len(text)], strict=True))
    return [piece for piece in pieces if piece]


def sentence_ends(text: str) -> Iterator[int]:
    """The positions after the end of each sentence."""
    for match in _END.finditer(text):
        if match[0] != "." or not _ABBREVIATION.search(text, max(0, match.end() - 8), match.end()):
            yield match.end()


def cut_to_fit(text: str, max_tokens: int, *, is_whole: bool = True) -> str:
    """Cut a text to at most `max_tokens` tokens, at the end of a sentence, and mark it as cut.

    With `is_whole=False`, the text already ends in the middle of a sentence.
    """
    if is_whole and estimate_text_tokens(text) <= max_tokens:
        return text
    mark = CUT_MARK if max_tokens >= 4 * estimate_text_tokens(CUT_MARK) else _SHORT_MARK
    room = prefix_within(text, max_tokens - estimate_text_tokens(mark))
    # The characters after the room decide whether a dot at its end ends a sentence.
    ends = [end for end in sentence_ends(text[: room + 100]) if end <= room]
    return text[: ends[-1] if ends else end_of_word(text, room)].rstrip() + mark


def clip(text: str, max_tokens: int) -> str:
    """The text, or if it is too long its beginning in whole words."""
    if estimate_text_tokens(text) <= max_tokens:
        return text
    room = prefix_within(text, max_tokens - estimate_text_tokens(_SHORT_MARK))
    return text[: end_of_word(text, room)].rstrip() + _SHORT_MARK


def prefix_within(text: str, max_tokens: int) -> int:
    """The length of the longest prefix that has at most `max_tokens` tokens."""
    low, high = 0, min(len(text), max(max_tokens, 0) * MOST_CHARACTERS_PER_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_text_tokens(text[:middle]) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return low


def end_of_word(text: str, position: int) -> int:
    """The end of the word at or shortly before a position; the position itself if no space is near."""
    if position >= len(text) or text[position].isspace():
        return position
    space = text.rfind(" ", max(0, position - 30), position)
    return space if space > 0 else position
