"""The measures of this suite, and how large and how often each is run."""

from dataclasses import dataclass
from pathlib import Path

from ..harness import Measure, Suite
from ..shared.calls import Calls
from .concurrency import file_tasks, processes
from .contenders import BASELINES, OURS, RAW_OWN, READERS, WRITERS, on_files
from .footprint import import_time, live_sessions, stall
from .histories import Workspace
from .runner import runner

_IDLE = 0.4  # longer than our engine lingers after the last session of a file has gone


@dataclass(frozen=True)
class Scale:
    """Sizes, and how often things are repeated that take milliseconds, tenths of seconds, and seconds."""

    sizes: tuple[int, ...]
    many: int
    some: int
    few: int
    turns: int
    processes: tuple[int, ...]
    process_turns: int
    live: int
    tick_afterwards: float


FULL = Scale(
    sizes=(100, 1000, 10_000, 100_000),
    many=200,
    some=20,
    few=5,
    turns=4,
    processes=(2, 4, 8),
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
    processes=(2,),
    process_turns=20,
    live=50,
    tick_afterwards=0.2,
)


def build(directory: Path, quick: bool) -> Suite:
    """The suite, with its files in a directory."""
    workspace = Workspace(directory)
    scale = QUICK if quick else FULL
    calls = Calls(on_files(workspace), BASELINES, WRITERS, READERS, newest=10)
    measures = [
        *_cycles(calls, scale),
        calls.add(1, scale.many),
        calls.add(5, scale.many),
        calls.add(1000, scale.some),
        *(calls.read_all(size, _read_repeats(scale, size)) for size in scale.sizes),
        *(calls.read_newest(size, scale.many) for size in scale.sizes),
        calls.pop(scale.many),
        calls.clear(scale.many),
        *file_tasks(workspace, scale.turns, scale.few),
        *(processes(workspace, number, scale.process_turns, scale.few) for number in scale.processes),
        live_sessions(workspace, scale.live, scale.few),
        stall(workspace, scale.sizes[-1], scale.tick_afterwards, scale.few),
        *(runner(workspace, size, scale.some) for size in (50, 1000)),
        import_time(scale.few),
    ]
    return Suite("sessions", OURS, WRITERS, BASELINES, measures)


def _cycles(calls: Calls, scale: Scale) -> list[Measure]:
    everybody = (*WRITERS, RAW_OWN)
    after_a_rest = f"after {_IDLE} s without any"
    return [
        calls.cycle("cycle-alone", "one after the other", scale.many, everybody, hold=False),
        calls.cycle("cycle-cold", after_a_rest, scale.some, everybody, hold=False, pause=_IDLE),
        calls.cycle("cycle-held", "another session is open", scale.many, everybody, hold=True),
    ]


def _read_repeats(scale: Scale, size: int) -> int:
    """The larger a read, the longer it takes and the less it varies."""
    if size <= 1000:
        return scale.many
    return scale.some if size <= 10_000 else scale.few
