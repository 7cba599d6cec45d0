"""The measures of this suite, and how large and how often each is run."""

from dataclasses import dataclass
from pathlib import Path

from ..harness import Suite
from ..sessions.histories import Workspace
from .contenders import COMPACT, PLAIN, REWRITE, SDK_COMPACTION, SUMMARIZE, TRIM
from .locomo import evidence
from .turns import compact, new_handle, turn, view


@dataclass(frozen=True)
class Scale:
    """Sizes, and how often things are repeated that take milliseconds, and more."""

    sizes: tuple[int, ...]
    many: int
    some: int
    few: int


FULL = Scale(sizes=(100, 1000, 10_000, 100_000), many=300, some=40, few=9)
QUICK = Scale(sizes=(100, 1000), many=20, some=5, few=2)


def build(directory: Path, quick: bool) -> Suite:
    """The suite, with its files in a directory."""
    workspace = Workspace(directory)
    scale = QUICK if quick else FULL
    measures = [
        *(turn(workspace, size, _repeats(scale, size)) for size in scale.sizes),
        *(view(workspace, size, scale.many) for size in scale.sizes),
        *(compact(workspace, size, _repeats(scale, size)) for size in scale.sizes),
        *(new_handle(workspace, size, scale.many) for size in scale.sizes),
        *evidence(),
    ]
    columns = (TRIM, SUMMARIZE, COMPACT, REWRITE, SDK_COMPACTION, PLAIN)
    return Suite("strategies", TRIM, columns, (PLAIN,), measures)


def _repeats(scale: Scale, size: int) -> int:
    """The larger a history, the longer the contenders take that read it all, and the less they vary."""
    if size <= 1000:
        return scale.many
    return scale.some if size <= 10_000 else scale.few
