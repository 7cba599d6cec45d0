"""The measures of this suite, and how large and how often each is run."""

from dataclasses import dataclass
from pathlib import Path

from ..harness import Suite
from .calls import BASELINES, add, clear, pop, read_all, read_newest, request_cycles
from .concurrency import processes, tasks
from .contenders import OURS, WRITERS
from .footprint import import_time, live_sessions, stall
from .histories import Workspace
from .runner import runner


@dataclass(frozen=True)
class Scale:
    """Sizes, and how often things are repeated that take milliseconds, tenths of seconds, and seconds."""

    sizes: tuple[int, ...]
    many: int
    some: int
    few: int
    turns: int
    processes: int
    process_turns: int
    live: int
    tick_afterwards: float


FULL = Scale(
    sizes=(100, 1000, 10_000, 100_000),
    many=200,
    some=20,
    few=5,
    turns=4,
    processes=4,
    process_turns=150,
    live=1000,
    tick_afterwards=1.0,
)
QUICK = Scale(
    sizes=(100, 1000),
    many=10,
    some=4,
    few=2,
    turns=1,
    processes=2,
    process_turns=20,
    live=50,
    tick_afterwards=0.2,
)


def build(directory: Path, quick: bool) -> Suite:
    """The suite, with its files in a directory."""
    workspace = Workspace(directory)
    scale = QUICK if quick else FULL
    measures = [
        *request_cycles(workspace, scale.many, scale.some),
        add(workspace, 1, scale.many),
        add(workspace, 5, scale.many),
        add(workspace, 1000, scale.some),
        *(read_all(workspace, size, _read_repeats(scale, size)) for size in scale.sizes),
        *(read_newest(workspace, size, scale.many) for size in scale.sizes),
        pop(workspace, scale.many),
        clear(workspace, scale.many),
        *tasks(workspace, scale.turns, scale.few),
        processes(workspace, scale.processes, scale.process_turns, scale.few),
        live_sessions(workspace, scale.live, scale.few),
        stall(workspace, scale.sizes[-1], scale.tick_afterwards, scale.few),
        *(runner(workspace, size, scale.some) for size in (50, 1000)),
        import_time(scale.few),
    ]
    return Suite("sessions", OURS, WRITERS, BASELINES, measures)


def _read_repeats(scale: Scale, size: int) -> int:
    """The larger a read, the longer it takes and the less it varies."""
    if size <= 1000:
        return scale.many
    return scale.some if size <= 10_000 else scale.few
