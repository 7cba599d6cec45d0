"""What processes and databases hold at a moment, and what must not become of it over time."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import psutil

_WARM, _FULL = 1 / 4, 1 / 2  # of a soak: caches are filled then, and pools and files as large as they get
_MOST_GROWTH = {
    "memory": (0.05, _WARM),
    "handles": (0.1, _FULL),
    "threads": (0.1, _FULL),
    "stored": (0.1, _FULL),
}
"""The part by which each may be more at the end than after this part of the soak."""

MOST_DRIFT = 1.5  # times the latency at the start
ENOUGH = 15_000  # operations: with fewer, caches are still being filled


@dataclass(frozen=True)
class Look:
    """What was held at the end of a stretch of traffic."""

    operations: int
    """So far."""
    latency: float
    """Seconds that half of the calls of the stretch did not exceed."""
    memory: int
    """Bytes, of all processes together."""
    handles: int
    threads: int
    log: int = 0
    """Bytes of a write-ahead log."""
    stored: int = 0
    """Bytes of the database."""


@dataclass(frozen=True)
class Held:
    """What processes hold."""

    memory: int
    handles: int
    threads: int


def held_by(processes: Iterable[psutil.Process]) -> Held:
    """What processes hold together, with those that they have started."""
    family = [each for process in processes for each in (process, *process.children(recursive=True))]
    return Held(
        sum(each.memory_info().rss for each in family),
        sum(each.num_fds() for each in family),
        sum(each.num_threads() for each in family),
    )


def what_did_not_hold(looks: Sequence[Look], largest_log: int) -> list[str]:
    """The promises that did not hold; after little traffic, only those that hold from the start."""
    found = []
    largest = max(look.log for look in looks)
    if largest > largest_log:
        found.append(f"the write-ahead log had {largest:,} bytes, not {largest_log:,} at most")
    if looks[-1].operations < ENOUGH:
        return found
    for name, (most, since) in _MOST_GROWTH.items():
        growth = grown(looks, attrgetter(name), since)
        if growth > most:
            found.append(f"{name}: {growth:+.1%} since {since:.0%} of the soak")
    if drift(looks) > MOST_DRIFT:
        found.append(f"a call took {drift(looks):.2f} times as long at the end")
    return found


def grown(looks: Sequence[Look], what: Callable[[Look], float], since: float) -> float:
    """By which part the end is above what was there after a part of the soak, by a few looks at each."""
    warm = looks[int(len(looks) * since) :]
    some = max(len(looks) // 8, 1)
    before, after = (statistics.median(map(what, part)) for part in (warm[:some], warm[-some:]))
    return after / before - 1 if before else 0.0


def drift(looks: Sequence[Look]) -> float:
    """How many times as long a call takes in the last quarter as in the second, by their middles."""
    some = max(len(looks) // 4, 1)
    early = statistics.median(look.latency for look in looks[some : 2 * some] or looks[:1])
    late = statistics.median(look.latency for look in looks[-some:])
    return late / early if early else 1.0
