"""The measures of this suite, and how large and how often each is run."""

from dataclasses import dataclass
from pathlib import Path

from ..harness import Suite
from .bare import BARE
from .databases import KINDS, Databases
from .growth import growth, name_of
from .page import SIZES, page
from .peers import INLINE, MEM0, peers
from .processing import OFFLINE, PROVIDER, process
from .recording import record
from .stores import OURS


@dataclass(frozen=True)
class Scale:
    """Sizes, and how often things are repeated that take milliseconds, hundredths of seconds, and seconds."""

    many: int
    some: int
    few: int
    conversations: int
    memories: tuple[int, ...]


FULL = Scale(many=100, some=30, few=5, conversations=100, memories=(10, 100, 1000, 10_000))
QUICK = Scale(many=10, some=5, few=2, conversations=20, memories=(10, 1000))


def build(directory: Path, quick: bool) -> Suite:
    """The suite, with its files in a directory; servers make folders of their own."""
    databases = Databases(directory)
    scale = QUICK if quick else FULL
    measures = [
        *(record(databases, kind, scale.many) for kind in KINDS),
        *(
            process(databases, kind, workers, scale.conversations, scale.few)
            for kind in KINDS
            for workers in (1, 4)
        ),
        *(growth(databases, kind, scale.memories, scale.some) for kind in KINDS),
        *(page(databases, kind, SIZES, scale.some) for kind in KINDS),
        peers(databases, scale.some),
    ]
    smallest, *_, largest = map(name_of, scale.memories)
    columns = (OURS, OFFLINE, PROVIDER, BARE, INLINE, MEM0, smallest, largest)
    return Suite("memory", OURS, columns, (BARE,), measures)
