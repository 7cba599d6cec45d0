"""Splits a text into passages: paragraphs and sentences of about 500 characters, code blocks apart.

A passage is what a message is found by: long answers are searched piece by piece. A short text is one
passage. The work is linear in the length of the text, whatever it contains.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST = 16
"""Passages of a text. A text that would have more has longer ones."""
_USUAL = 500  # characters of a passage
_SHORT = 600  # characters up to which a text is one passage
_FENCE = re.compile(r"^[ \t]{0,3}```", re.MULTILINE)
# It begins only where a run of signs begins: otherwise the time would be quadratic in the length of a run.
_BREAK = re.compile(r"\n+|(?<![.!?])[.!?]++(?=\s)|[。！？]+")


@dataclass(frozen=True)
class Passage:
    """A part of a text, by its first character and the one after its last."""

    start: int
    end: int
    is_code: bool = False


def split(text: str) -> list[Passage]:
    """The passages of a text in order, at least one. Together they cover all of it but white space."""
    if len(text) <= _SHORT:
        return [Passage(0, len(text), text.lstrip().startswith("```"))]
    blocks = list(_blocks(text))
    size = _USUAL
    while size < len(text):
        found = [passage for block in blocks for passage in _pack(text, block, size)]
        if len(found) <= MOST:
            return found or [Passage(0, len(text))]
        if len(blocks) > MOST // 2:  # too many code blocks to keep them apart
            blocks = [Passage(0, len(text))]
        size = max(size * 5 // 4, len(text) // MOST)
    return [Passage(0, len(text))]


def _blocks(text: str) -> Iterator[Passage]:
    """The code blocks and what is between them. A block without an end reaches to the end of the text."""
    begin, fences = 0, [match.start() for match in _FENCE.finditer(text)]
    for opening, closing in zip(fences[::2], [*fences[1::2], len(text)], strict=False):
        line_end = text.find("\n", closing)
        end = len(text) if line_end < 0 else line_end
        yield Passage(begin, opening)
        yield Passage(opening, end, is_code=True)
        begin = end
    yield Passage(begin, len(text))


def _pack(text: str, block: Passage, size: int) -> Iterator[Passage]:
    """The sentences of a block, packed to passages of at most about `size` characters."""
    begin = block.start
    for end in _ends(text, block, size):
        # A last piece that is short stays with what is before it.
        if end - begin >= size and block.end - end > size // 4:
            yield from _trimmed(text, begin, end, block.is_code)
            begin = end
    yield from _trimmed(text, begin, block.end, block.is_code)


def _ends(text: str, block: Passage, size: int) -> Iterator[int]:
    """Where the sentences of a block end. A sentence that is too long is cut."""
    last = block.start
    for match in _BREAK.finditer(text, block.start, block.end):
        yield from range(last + 2 * size, match.end(), 2 * size)
        yield match.end()
        last = match.end()
    yield from range(last + 2 * size, block.end, 2 * size)


def _trimmed(text: str, start: int, end: int, is_code: bool) -> Iterator[Passage]:
    """The passage without the white space around it, unless nothing is left."""
    piece = text[start:end]
    begin = start + len(piece) - len(piece.lstrip())
    stop = start + len(piece.rstrip())
    if begin < stop:
        yield Passage(begin, stop, is_code)
