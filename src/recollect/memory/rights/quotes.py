"""Finding many texts in many others, word for word, however often they were escaped on the way.

What is looked through is cut into pieces of a few characters. Of any text that stands in it, whole pieces must
be there: so a few look-ups tell for nearly all texts that they are not, whatever their number.
"""

import re
from collections.abc import Iterable

from ...sessions.sql.columns import text_from_column

_SHORTEST = 8  # bytes: what is shorter stands in many an answer by chance
_PIECE = 4
_PIECES = re.compile(rf"[\s\S]{{{_PIECE}}}")
# JSON within JSON has as many backslashes as it likes.
_ESCAPED = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|U(00[01][0-9a-fA-F]{5})|x([0-9a-fA-F]{2})|([nrtbf]))?")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_HALVES = re.compile("[\ud800-\udfff]")


def plain(text: str) -> str:
    """A text without escapes: the same for all that differ in those, in spaces and in case alone."""
    if "\\" in text:
        text = _ESCAPED.sub(_meant, text)
    if _HALVES.search(text):
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
        self._short = [each for each in wanted if len(each) < 2 * _PIECE - 1]
        self._by_piece: dict[str, list[tuple[str, int]]] = {}
        for text in wanted.difference(self._short):
            # Wherever the text stands, one of its last pieces begins where a piece of the whole does.
            for start in range(len(text) - 2 * _PIECE + 1, len(text) - _PIECE + 1):
                self._by_piece.setdefault(text[start : start + _PIECE], []).append((text, start))

    def __bool__(self) -> bool:
        return bool(self._short or self._by_piece)

    def stand_in(self, *columns: str) -> bool:
        """Whether any of the texts stands in any of these columns."""
        return any(self._stand_in(plain(text_from_column(column))) for column in columns)

    def _stand_in(self, said: str) -> bool:
        if any(text in said for text in self._short):
            return True
        pieces = set(_PIECES.findall(said))
        return any(
            _may_hold(pieces, text, start) and text in said
            for piece in pieces & self._by_piece.keys()
            for text, start in self._by_piece[piece]
        )


def _may_hold(pieces: set[str], text: str, start: int) -> bool:
    """Whether all pieces are there that a text has before one of them."""
    return all(text[place : place + _PIECE] in pieces for place in range(start - _PIECE, -1, -_PIECE))
