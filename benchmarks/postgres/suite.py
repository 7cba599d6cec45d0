"""The measures of this suite, and how large and how often each is run."""

from dataclasses import dataclass
from pathlib import Path

from ..harness import Suite
from ..shared.calls import Calls
from ..shared.tasks import CONVERSATIONS, TASKS, add_turn, on_sessions, tasks, writers
from .contenders import BASELINES, CONTENDERS, ON_POSTGRES, OURS, OURS_GIVEN, SDK_BY_URL
from .databases import Databases
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


FULL = Scale(sizes=(50, 1000, 10_000, 100_000), many=200, some=20, few=5, turns=4, live=1000)
QUICK = Scale(sizes=(50, 1000), many=10, some=4, few=2, turns=1, live=50)


def build(directory: Path, quick: bool) -> Suite:
    """The suite, with its files in a directory; servers make folders of their own."""
    databases = Databases(directory)
    scale = QUICK if quick else FULL
    repeats = {50: scale.many, 1000: scale.many, 10_000: scale.some, 100_000: scale.few}
    setting = databases.on_one_server
    calls = Calls(setting, BASELINES, CONTENDERS, CONTENDERS)
    everybody = (*CONTENDERS, OURS_GIVEN, SDK_BY_URL)
    adding = on_sessions(setting, ON_POSTGRES, CONVERSATIONS, add_turn, scale.turns)
    what = f"{TASKS} tasks on different sessions; a turn is to add 5 items"
    measures = [
        calls.cycle("cycle", "another session is open", scale.many, everybody, hold=True),
        calls.add(1, scale.many),
        calls.add(5, scale.many),
        calls.add(1000, scale.some),
        *(calls.read_all(size, repeats[size]) for size in scale.sizes),
        *(calls.read_newest(size, scale.many) for size in scale.sizes[1:]),
        calls.pop(scale.many),
        tasks("tasks-add", what, scale.some, adding, BASELINES),
        writers(setting, ON_POSTGRES, scale.turns, scale.some, BASELINES),
        live_sessions(databases, scale.live, scale.few),
    ]
    return Suite("postgres", OURS, CONTENDERS, BASELINES, measures)
