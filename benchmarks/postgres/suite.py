"""The measures of this suite, and how large and how often each is run."""

from dataclasses import dataclass
from pathlib import Path

from ..harness import Suite
from .calls import add, pop, read_all, read_newest, request_cycle
from .concurrency import live_sessions, tasks, writers
from .contenders import BASELINES, CONTENDERS, OURS
from .databases import Databases


@dataclass(frozen=True)
class Scale:
    """Sizes, and how often things are repeated that take milliseconds, tenths of seconds, and seconds."""

    sizes: tuple[int, ...]
    many: int
    some: int
    few: int
    turns: int
    live: int


FULL = Scale(sizes=(50, 1000, 10_000, 100_000), many=200, some=20, few=5, turns=4, live=1000)
QUICK = Scale(sizes=(50, 1000), many=10, some=4, few=2, turns=1, live=50)


def build(directory: Path, quick: bool) -> Suite:
    """The suite, with its files in a directory; servers make folders of their own."""
    databases = Databases(directory)
    scale = QUICK if quick else FULL
    repeats = {50: scale.many, 1000: scale.many, 10_000: scale.some, 100_000: scale.few}
    measures = [
        request_cycle(databases, scale.many),
        add(databases, 1, scale.many),
        add(databases, 5, scale.many),
        add(databases, 1000, scale.some),
        *(read_all(databases, size, repeats[size]) for size in scale.sizes),
        *(read_newest(databases, size, scale.many) for size in scale.sizes[1:]),
        pop(databases, scale.many),
        tasks(databases, scale.turns, scale.some),
        writers(databases, scale.turns, scale.some),
        live_sessions(databases, scale.live, scale.few),
    ]
    return Suite("postgres", OURS, CONTENDERS, BASELINES, measures)
