"""The measures of this suite, and how large and how often each is run."""

from dataclasses import dataclass
from pathlib import Path

from ..harness import Suite
from ..shared.calls import Calls
from ..shared.tasks import CONVERSATIONS, TASKS, add_turn, on_sessions, tasks, writers
from .contenders import BASELINES, CONTENDERS, OURS, on_servers
from .footprint import live_sessions


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
    calls = Calls(on_servers, BASELINES, CONTENDERS, CONTENDERS, adds=5, pops=5)
    adding = on_sessions(on_servers, CONTENDERS, CONVERSATIONS, add_turn, scale.turns)
    what = f"{TASKS} tasks on different sessions; a turn is to add 5 items"
    measures = [
        calls.cycle("cycle-alone", "one after the other", scale.many, CONTENDERS, hold=False),
        calls.cycle("cycle-held", "another session is open", scale.many, CONTENDERS, hold=True),
        calls.add(1, scale.many),
        calls.add(5, scale.many),
        calls.add(1000, scale.some),
        *(calls.read_all(size, repeats[size]) for size in scale.sizes),
        *(calls.read_newest(size, scale.many) for size in scale.sizes),
        calls.pop(scale.many),
        tasks("tasks-add", what, scale.some, adding, BASELINES),
        writers(on_servers, CONTENDERS, 1, scale.few, BASELINES),
        live_sessions(scale.live, scale.few),
    ]
    return Suite("redis", OURS, CONTENDERS, BASELINES, measures)
