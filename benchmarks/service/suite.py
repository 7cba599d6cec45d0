"""The measures of this suite, and how large and how often each is run."""

from dataclasses import dataclass
from pathlib import Path

from ..harness import Suite
from ..memory.databases import KINDS, Databases
from .capacity import take
from .contenders import BARE, BARE_STORING, OURS, STORE, TWO, TWO_PROCESSES, WITHOUT_WORKERS
from .dashboard import Volume, look
from .footprint import weigh
from .lasting import Span, last
from .recording import record
from .searching import find
from .streams import stream


@dataclass(frozen=True)
class Scale:
    """Sizes, lengths in seconds, and how often things are repeated."""

    seconds: float
    repeats: int
    entries: int
    streams: int
    span: Span
    volume: Volume
    weighed: int
    """Conversations whose bytes are counted."""


# An hour of five requests a second is 18,000 of them: sixty a second for five minutes.
FULL = Scale(
    seconds=10,
    repeats=3,
    entries=1000,
    streams=200,
    span=Span(300, 60, rate=60, every=5),
    volume=Volume(10_000, 1000, 20_000),
    weighed=2000,
)
QUICK = Scale(
    seconds=3,
    repeats=1,
    entries=200,
    streams=40,
    span=Span(40, 15, rate=20, every=1),
    volume=Volume(300, 100, 1000),
    weighed=100,
)


def build(directory: Path, quick: bool) -> Suite:
    """The suite, with its files in a directory; servers make folders of their own."""
    databases = Databases(directory)
    scale = QUICK if quick else FULL
    measures = [
        *(record(databases, kind, directory, scale.seconds, scale.repeats) for kind in KINDS),
        *(find(databases, kind, directory, scale.entries, scale.seconds, scale.repeats) for kind in KINDS),
        *(stream(databases, kind, directory, scale.streams, scale.repeats) for kind in KINDS),
        *(last(databases, kind, directory, scale.span) for kind in KINDS),
        *(take(databases, kind, directory, scale.seconds, scale.repeats) for kind in KINDS),
        *(weigh(databases, kind, scale.weighed) for kind in KINDS),
        *(look(databases, kind, directory, scale.volume, scale.repeats) for kind in KINDS),
    ]
    columns = (OURS, WITHOUT_WORKERS, TWO, TWO_PROCESSES, STORE, BARE_STORING, BARE)
    return Suite("service", OURS, columns, (BARE_STORING, STORE), measures)
