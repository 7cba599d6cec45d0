"""The measures of this suite, and how large and how often each is run."""

from pathlib import Path

from ..harness import Suite
from ..memory.databases import KINDS, Databases
from .scale import name_of, scale

_SIZES, _REPEATS = (1_000, 20_000, 100_000), 5
_QUICK_SIZES, _QUICK_REPEATS = (200, 1_000), 1


def build(directory: Path, quick: bool) -> Suite:
    """The suite, with its files in a directory; servers make folders of their own."""
    databases = Databases(directory)
    sizes, repeats = (_QUICK_SIZES, _QUICK_REPEATS) if quick else (_SIZES, _REPEATS)
    measures = [scale(databases, kind, sizes, repeats) for kind in KINDS]
    columns = tuple(map(name_of, sizes))
    return Suite("search", columns[-1], columns, (columns[0],), measures)
