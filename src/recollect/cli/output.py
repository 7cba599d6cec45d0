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

_JOINERS = "\u200c\u200d"  # zero-width joiners: some words and emoji break without them
_HIDDEN = (
    "Cc",
    "Cf",
    "Cs",
    "Cn",
    "Zl",
    "Zp",
)  # control, format, unassigned and line separator characters
_SHORTENED = "…"
_NARROWEST = 20  # columns that truncated text keeps
_BETWEEN = "  "
_COLORS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}


# --- text ---


def escape_control_characters(text: str) -> str:
    """Replace characters that could control a terminal by their escape codes."""
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
    """Return escaped text on one line, with white space collapsed to single spaces."""
    return escape_control_characters(" ".join(text.split()))


def indent_lines(text: str, by: str) -> str:
    """Return escaped text with each line indented."""
    return "\n".join(by + line for line in escape_control_characters(text.replace("\r\n", "\n")).split("\n"))


def display_width(text: str) -> int:
    """Count terminal columns: Chinese characters and emoji take two, combining marks none."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def truncate(text: str, columns: int) -> str:
    """Cut text to a number of columns, with an ellipsis if anything is cut."""
    if display_width(text) <= columns:
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
    """Render rows under a header. On a terminal the last column is cut to the width of the window."""
    cells = [[one_line(str(cell)) for cell in row] for row in rows]
    widths = [max(map(display_width, column)) for column in zip(head, *cells, strict=True)]
    room = _room(widths[:-1])
    lines = [colorize(_row(head, widths, room), "bold")]
    return "\n".join([*lines, *(_row(row, widths, room) for row in cells)])


def _room(before: Sequence[int]) -> int | None:
    """Return the width of the last column, or `None` if the output is not a terminal."""
    if not sys.stdout.isatty():
        return None
    taken = sum(before) + len(_BETWEEN) * len(before)
    return max(_NARROWEST, shutil.get_terminal_size().columns - taken)


def _row(cells: Sequence[str], widths: Sequence[int], room: int | None) -> str:
    *before, last = cells
    padded = [cell + " " * (width - display_width(cell)) for cell, width in zip(before, widths, strict=False)]
    return _BETWEEN.join([*padded, last if room is None else truncate(last, room)]).rstrip()


# --- colors ---


def colorize(text: str, color: str) -> str:
    """Return colored text if standard output is a terminal that supports color."""
    return f"\x1b[{_COLORS[color]}m{text}\x1b[0m" if supports_color(sys.stdout) else text


def supports_color(stream: IO[str]) -> bool:
    """Whether a stream is a terminal with color. `NO_COLOR` turns color off."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


# --- JSON and notes ---


def print_json(value: Any) -> None:
    """Print a value as one JSON document, in ASCII so that any terminal and encoding can show it."""
    print(json.dumps(value, indent=2))


def print_note(words: str) -> None:
    """Print a note to standard error, so that standard output has only the result."""
    print(escape_control_characters(words), file=sys.stderr, flush=True)


def plural(number: int, one: str, many: str | None = None) -> str:
    """Format a count with its noun: `1 entry`, `1,200 entries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def describe_partial(count: int) -> str:
    """Return the count of partly read conversations as the end of a line, or an empty text."""
    return f", {count:,} partly read" if count else ""


_WIDTH = 30  # of the bar
_REDRAW_SECONDS = 0.1
_CLEAR = "\r\x1b[K"


class Progress:
    """A progress line on standard error. It is redrawn in place and cleared at the end."""

    def __init__(self, words: str, is_shown: bool) -> None:
        self._words = words
        self._is_shown = is_shown
        self._drawn_at = -_REDRAW_SECONDS
        self._count = 0

    def advance(self, by: int = 1) -> None:
        """Count more finished work when the total is unknown."""
        self._count += by
        self._draw(f"{self._words}: {self._count:,}")

    def reach(self, done: int, total: int) -> None:
        """Show how much of a known total is finished."""
        share = min(1.0, done / total) if total else 1.0
        bar = "█" * int(share * _WIDTH)
        self._draw(f"{self._words} {bar:·<{_WIDTH}} {share:4.0%}")

    def begin(self) -> None:
        """Show the line before any progress is known."""
        self._draw(f"{self._words} …")

    def _draw(self, line: str) -> None:
        if self._is_shown and monotonic() - self._drawn_at >= _REDRAW_SECONDS:
            self._drawn_at = monotonic()
            print(f"{_CLEAR}{line}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the line."""
        if self._is_shown:
            print(_CLEAR, end="", file=sys.stderr, flush=True)


@contextmanager
def progress(words: str) -> Iterator[Progress]:
    """Show progress if standard error is a terminal; otherwise write nothing."""
    made = Progress(words, sys.stderr.isatty())
    made.begin()
    try:
        yield made
    finally:
        made.clear()
