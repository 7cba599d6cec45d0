"""Finding many texts in many others, word for word, however often they were escaped on the way.

A text is known by the hash of its last characters. Of what is looked through, the hashes of as many
characters at every place are made at once: so to look for a thousand texts takes hardly longer than for one.
"""

import re
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ...sql.columns import text_from_column

_SHORTEST = 8  # bytes: what is shorter stands in many an answer by chance
_WIDTHS = (8, 16, 32)  # characters that are hashed: as many of a text as it has
_BASE = 0x9E3779B97F4A7C15
_MARKED_BITS = 16
_UNMARKED = np.uint64(64 - _MARKED_BITS)
# JSON within JSON has as many backslashes as it likes.
_ESCAPED = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|U(00[01][0-9a-fA-F]{5})|x([0-9a-fA-F]{2})|([nrtbf]))?")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_HALVES = re.compile("[\ud800-\udfff]")


def plain(text: str) -> str:
    """A text without escapes: the same for all that differ in those, in spaces and in case alone."""
    if "\\" in text:
        text = _ESCAPED.sub(_meant, text)
    if not text.isascii() and _HALVES.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return " ".join(text.casefold().split())


def _meant(escaped: re.Match[str]) -> str:
    *codes, control = escaped.groups()
    code = next((int(each, 16) for each in codes if each), None)
    if code is None:
        return _CONTROLS.get(control, "")
    return chr(code) if code < 0x110000 else ""


class Quotes:
    """Texts that are looked for, made ready to be looked for often."""

    def __init__(self, texts: Iterable[str]) -> None:
        wanted = {each for each in map(plain, texts) if len(each.encode("utf-8", "replace")) >= _SHORTEST}
        self._short = [each for each in wanted if len(each) < _WIDTHS[0]]
        self._by_end: dict[int, dict[int, list[str]]] = {}
        for text in wanted.difference(self._short):
            width, hashes = list(_hashes(text[-_WIDTHS[-1] :]))[-1]
            self._by_end.setdefault(width, {}).setdefault(int(hashes[-1]), []).append(text)
        self._marked = {width: _marks(ends) for width, ends in self._by_end.items()}

    def __bool__(self) -> bool:
        return bool(self._short or self._by_end)

    def stand_in(self, *columns: str) -> bool:
        """Whether any of the texts stands in any of these columns."""
        return any(self._stand_in(plain(text_from_column(column))) for column in columns)

    def _stand_in(self, said: str) -> bool:
        if any(text in said for text in self._short):
            return True
        return any(
            said.endswith(text, 0, place + width)
            for width, hashes in _hashes(said)
            if width in self._marked
            for place in np.flatnonzero(self._marked[width][hashes >> _UNMARKED]).tolist()
            for text in self._by_end[width].get(int(hashes[place]), ())
        )


def _hashes(text: str) -> Iterator[tuple[int, NDArray[np.uint64]]]:
    """The hashes of so many characters from every place on, for each width that the text has."""
    hashes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    width = 1
    while 2 * width <= min(len(text), _WIDTHS[-1]):  # two halves make a whole
        hashes = hashes[:-width] * np.uint64(pow(_BASE, width, 2**64)) + hashes[width:]
        width *= 2
        if width in _WIDTHS:
            yield width, hashes


def _marks(hashes: Iterable[int]) -> NDArray[np.bool_]:
    """Which first bits hashes have: what has others need not be looked up."""
    marked = np.zeros(2**_MARKED_BITS, np.bool_)
    marked[[each >> int(_UNMARKED) for each in hashes]] = True
    return marked
