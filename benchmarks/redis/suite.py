"""The measures of this suite, and how large and how often each is run."""

from dataclasses import dataclass
from pathlib import Path

from ..harness import Suite
from .calls import add, pop, read_all, read_newest, request_cycles
from .concurrency import live_sessions, tasks, writers
from .contenders import BASELINES, CONTENDERS, OURS


@dataclass(frozen=True)
class Scale:
    """Sizes, and how often things are repeated that take milliseconds, tenths of seconds, and seconds."""

    sizes: tuple[int, ...]
    many: int
    some: int
    few: int
    turns: int
    live: int


FULL = Scale(sizes=(1000, 10_000, 100_000), many=100, some=10, few=3, turns=4, live=1000)
QUICK = Scale(sizes=(1000, 10_000), many=20, some=4, few=2, turns=1, live=50)


def build(directory: Path, quick: bool) -> Suite:  # noqa: ARG001 - servers make folders of their own
    """The suite. Each contender has a server of its own, which keeps nothing on the disk."""
    scale = QUICK if quick else FULL
    repeats = {1000: scale.many, 10_000: scale.some, 100_000: scale.few}
    measures = [
        *request_cycles(scale.many),
        add(1, scale.many),
        add(5, scale.many),
        add(1000, scale.some),
        *(read_all(size, repeats[size]) for size in scale.sizes),
        *(read_newest(size, scale.many) for size in scale.sizes),
        pop(scale.many),
        tasks(scale.turns, scale.some),
        writers(1, scale.few),
        live_sessions(scale.live, scale.few),
    ]
    return Suite("redis", OURS, CONTENDERS, BASELINES, measures)
