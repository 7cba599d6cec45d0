"""How far long work has come: a line on standard error, where a person looks at it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

_WIDTH = 30  # of the bar
_BETWEEN = 0.1  # seconds between two looks
_CLEAR = "\r\x1b[K"


class Progress:
    """A line that is drawn again and again, and is gone when the work is done."""

    def __init__(self, words: str, is_shown: bool) -> None:
        self._words = words
        self._is_shown = is_shown
        self._drawn_at = -_BETWEEN
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
        if self._is_shown and monotonic() - self._drawn_at >= _BETWEEN:
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
