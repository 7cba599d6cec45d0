"""Terminal output: escaped text, tables, colours, progress and JSON."""

import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import IO, Any

_JOINERS = "\u200c\u200d"  # of letters and of emoji: without them some words and pictures fall apart
_HIDDEN = ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp")  # what moves the cursor, turns the text, or shows nothing
_SHORTENED = "…"
_NARROWEST = 20  # columns that a shortened text keeps
_BETWEEN = "  "
_COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}


# --- texts ---


def visible(text: str) -> str:
    """A text in which nothing acts on a terminal: what cannot be seen is written as its code."""
    if text.isprintable():
        return text
    return "".join(character if _is_shown(character) else _code(character) for character in text)


def _is_shown(character: str) -> bool:
    if character == "\n" or character in _JOINERS:
        return True
    return unicodedata.category(character) not in _HIDDEN


def _code(character: str) -> str:
    return "    " if character == "\t" else ascii(character)[1:-1]


def one_line(text: str) -> str:
    """A text as a line of a table: visible, with a space wherever there was white space."""
    return visible(" ".join(text.split()))


def indented(text: str, by: str) -> str:
    """A visible text of several lines, each after the same indent."""
    return "\n".join(by + line for line in visible(text.replace("\r\n", "\n")).split("\n"))


def width_of(text: str) -> int:
    """How many columns a text takes: Chinese letters and emoji take two, marks on letters none."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shortened(text: str, columns: int) -> str:
    """The beginning of a text that takes more columns than there are."""
    if width_of(text) <= columns:
        return text
    taken, end = 0, 0
    for character in text:
        taken += _columns(character)
        if taken > columns - 1:
            break
        end += 1
    return text[:end].rstrip() + _SHORTENED


# --- tables ---


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows beneath a head. On a terminal the last column takes what room there is, and no more."""
    told = [[one_line(str(cell)) for cell in row] for row in rows]
    widths = [max(map(width_of, column)) for column in zip(head, *told, strict=True)]
    room = _room(widths[:-1])
    lines = [painted(_row(head, widths, room), "bold")]
    return "\n".join([*lines, *(_row(row, widths, room) for row in told)])


def _room(before: Sequence[int]) -> int | None:
    """Columns for the last; `None` where nobody looks, and nothing need be shortened."""
    if not sys.stdout.isatty():
        return None
    taken = sum(before) + len(_BETWEEN) * len(before)
    return max(_NARROWEST, shutil.get_terminal_size().columns - taken)


def _row(cells: Sequence[str], widths: Sequence[int], room: int | None) -> str:
    *before, last = cells
    padded = [cell + " " * (width - width_of(cell)) for cell, width in zip(before, widths, strict=False)]
    return _BETWEEN.join([*padded, last if room is None else shortened(last, room)]).rstrip()


# --- colours ---


def painted(text: str, colour: str) -> str:
    """A text in a colour, where a person looks at a terminal that has any, and wants them."""
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if has_colours(sys.stdout) else text


def has_colours(stream: IO[str]) -> bool:
    """Whether colours may be sent there."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


# --- saying ---


def tell_json(value: Any) -> None:
    """Tell a value as one JSON document. It is ASCII, so that no terminal and no encoding minds."""
    print(json.dumps(value, indent=2))


def say(words: str) -> None:
    """Say something beside the output, which stays what was asked for."""
    print(visible(words), file=sys.stderr, flush=True)


def plural(number: int, one: str, many: str | None = None) -> str:
    """A number of things: `1 entry`, `1,200 entries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def describe_partial(count: int) -> str:
    """How many conversations were not read whole, as the end of a line; empty if there are none."""
    return f", {count:,} not read whole" if count else ""


_WIDTH = 30  # of the bar
_REDRAW_SECONDS = 0.1
_CLEAR = "\r\x1b[K"


class Progress:
    """A line that is drawn again and again, and is gone when the work is done."""

    def __init__(self, words: str, is_shown: bool) -> None:
        self._words = words
        self._is_shown = is_shown
        self._drawn_at = -_REDRAW_SECONDS
        self._count = 0

    def advance(self, by: int = 1) -> None:
        """So much more is done, of nobody knows how much."""
        self._count += by
        self._draw(f"{self._words}: {self._count:,}")

    def reach(self, done: int, total: int) -> None:
        """So much is done, of so much."""
        share = min(1.0, done / total) if total else 1.0
        bar = "█" * int(share * _WIDTH)
        self._draw(f"{self._words} {bar:·<{_WIDTH}} {share:4.0%}")

    def begin(self) -> None:
        """It goes on, and tells nothing until it is done."""
        self._draw(f"{self._words} …")

    def _draw(self, line: str) -> None:
        if self._is_shown and monotonic() - self._drawn_at >= _REDRAW_SECONDS:
            self._drawn_at = monotonic()
            print(f"{_CLEAR}{line}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Leave nothing of the line."""
        if self._is_shown:
            print(_CLEAR, end="", file=sys.stderr, flush=True)


@contextmanager
def progress(words: str) -> Iterator[Progress]:
    """Tell how far something has come, where standard error is a terminal; else nothing is written."""
    made = Progress(words, sys.stderr.isatty())
    made.begin()
    try:
        yield made
    finally:
        made.clear()
