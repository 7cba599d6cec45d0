"""Memory over time: an hour of requests of all kinds, in five minutes."""

import asyncio
import statistics
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from time import perf_counter

from ..harness import Measure, Metric, Sample, Sampler
from ..memory.databases import Databases, Kind
from . import requests
from .client import encode
from .contenders import OURS, OpenTarget, provider_settings, service
from .processes import Running

_CONNECTIONS = 32
_KEPT = 40  # users whose data is there at a time; the oldest is erased as another comes
_MEGABYTE = 1024 * 1024
_METRICS = (
    Metric("growth after the start", "MB", has_ratio=False),
    Metric("slope after the start", "MB/min", has_ratio=False),
    Metric("held after the start", "MB", has_ratio=False),
    Metric("held at the end", "MB", has_ratio=False),
    Metric("requests", "/s", more_is_better=True, has_ratio=False),
    Metric("refused or broken", "", has_ratio=False),
    Metric("p99"),
    Metric("longest block"),
)


@dataclass(frozen=True)
class Span:
    """How long it takes, and how much is asked meanwhile."""

    seconds: float
    start: float
    """Seconds in which memory may grow: caches fill."""
    rate: float
    every: float
    """Seconds between two looks at the memory."""


def last(databases: Databases, kind: Kind, folder: Path, span: Span) -> Measure:
    """Record, search, chat, list, export and erase at a steady rate."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with databases.of_kind(kind) as make, provider_settings(folder) as settings:
            yield {OURS: partial(_sample, service(make, folder, settings=settings), span)}

    what = f"memory in {span.seconds:.0f} s at {span.rate:.0f} requests of all kinds a second"
    return Measure(f"lasting-{kind}", what, _METRICS, 1, open_all, (OURS,), warm_up=False)


async def _sample(open_target: OpenTarget, span: Span) -> Sample:
    async with open_target() as target:
        watching = asyncio.create_task(watch_memory(target.servers[0], span.seconds, span.every))
        outcome = await target.load(mixed(), connections=_CONNECTIONS, seconds=span.seconds, rate=span.rate)
        held = [each for each in await watching if each.at >= span.start]
        return {
            "growth after the start": growth(held) / _MEGABYTE,
            "slope after the start": slope(held) * 60 / _MEGABYTE,
            "held after the start": held[0].size / _MEGABYTE,
            "held at the end": held[-1].size / _MEGABYTE,
            "requests": outcome.rate,
            "refused or broken": float(outcome.failures.total()),
            "p99": outcome.percentile(99),
            "longest block": await target.longest_block(),
        }


def mixed() -> Iterator[bytes]:
    """Requests of all kinds without end; each user comes, is asked about, and is erased a while later."""
    questions = requests.questions(5)
    for number, body in zip(count(), requests.bodies(4, 1_000_000_000), strict=False):
        user = body["user_id"]
        yield encode("POST", "/v1/conversations", body)
        yield requests.listing(user)
        yield requests.chat(user, next(questions))
        yield requests.search(_earlier(user, number, _KEPT // 4), next(questions))
        yield requests.search(_earlier(user, number, _KEPT // 2), next(questions))
        yield requests.export(_earlier(user, number, _KEPT // 2))
        yield requests.erasure(_earlier(user, number, _KEPT))


def _earlier(user: str, number: int, by: int) -> str:
    """The user who came so many before."""
    return f"{user.rpartition('-')[0]}-{max(number - by, 0)}"


# --- memory ---


@dataclass(frozen=True)
class Held:
    """How much memory a process held at a time."""

    at: float
    size: int


async def watch_memory(server: Running, seconds: float, every: float) -> list[Held]:
    """How much memory a process holds, looked at so often."""
    began, seen = perf_counter(), list[Held]()
    while (at := perf_counter() - began) <= seconds:
        seen.append(Held(at, server.resident_bytes()))
        await asyncio.sleep(every)
    return seen


def growth(held: Sequence[Held]) -> float:
    """Bytes by which the middle of the last quarter is above that of the first."""
    part = max(len(held) // 4, 1)
    sizes = [each.size for each in held]
    return statistics.median(sizes[-part:]) - statistics.median(sizes[:part])


def slope(held: Sequence[Held]) -> float:
    """Bytes in a second, by the line that fits best."""
    if len(held) < 2:
        return 0.0
    return statistics.linear_regression([each.at for each in held], [each.size for each in held]).slope
