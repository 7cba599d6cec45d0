"""The measures of this suite, and how large and how often each is run."""

from dataclasses import dataclass
from pathlib import Path

from ..harness import Suite
from ..sessions.histories import Workspace
from ..shared.calls import Calls
from .contenders import BASELINES, CONTENDERS, FERNET, on_encrypted_files
from .measures import rotate, stall


@dataclass(frozen=True)
class Scale:
    """Sizes, and how often things are repeated that take milliseconds, tenths of seconds, and seconds."""

    large: int
    huge: int
    many: int
    some: int
    few: int


FULL = Scale(large=10_000, huge=100_000, many=200, some=20, few=5)
QUICK = Scale(large=2000, huge=4000, many=10, some=4, few=2)


def build(directory: Path, quick: bool) -> Suite:
    """The suite, with its files in a directory."""
    workspace = Workspace(directory)
    scale = QUICK if quick else FULL
    calls = Calls(on_encrypted_files(workspace), BASELINES, CONTENDERS, CONTENDERS, newest=10)
    measures = [
        calls.read_all(1000, scale.many),
        calls.read_all(scale.large, scale.some),
        calls.read_newest(scale.large, scale.many),
        calls.add(5, scale.many),
        calls.add(1000, scale.some),
        calls.pop(scale.many),
        rotate(workspace, 1000, scale.some),
        stall(workspace, scale.huge, scale.few),
    ]
    return Suite("encryption", FERNET, CONTENDERS, BASELINES, measures)
