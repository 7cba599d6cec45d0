"""The measures of this suite, and how large and how often each is run."""

from pathlib import Path

from ..harness import Suite
from .users import users

_SIZE, _REPEATS = 200_000, 3
_QUICK_SIZE, _QUICK_REPEATS = 6_000, 1


def build(_: Path, quick: bool) -> Suite:
    """The suite; its server makes a folder of its own."""
    size, repeats = (_QUICK_SIZE, _QUICK_REPEATS) if quick else (_SIZE, _REPEATS)
    columns = ("recollect", "recollect, 1 % by tag", "pgvector alone", "all vectors compared")
    return Suite("scale", columns[0], columns, ("pgvector alone",), [users(size, repeats)])
