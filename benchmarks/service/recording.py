"""Conversations saved in a second at full load, and how long one takes at half of what is asked for."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ..harness import Measure, Metric, Sample, Sampler
from ..memory.databases import Databases, Kind
from .client import encode
from .contenders import BARE, BARE_STORING, OURS, STORE, TWO, WITHOUT_WORKERS, bare_app, service, store_target
from .load import Outcome
from .requests import bodies

TARGETS = {"sqlite": 600.0, "postgres": 400.0}
"""Conversations a second that are to be reached."""

_CONNECTIONS = 32
_USERS = 1000
_MOST = 2000.0  # a second: more requests are not made in advance
_WARM_UP = 50
_METRICS = (
    Metric("conversations", "/s", more_is_better=True),
    Metric("p50 at half load"),
    Metric("p99 at half load"),
    Metric("processor for each"),
    Metric("longest block"),
    Metric("late at half load", "", has_ratio=False),
)


def record(databases: Databases, kind: Kind, folder: Path, seconds: float, repeats: int) -> Measure:
    """Save conversations of ten messages."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with databases.of_kind(kind) as make:
            opening: dict[str, Callable[[], AbstractAsyncContextManager[Any]]] = {
                BARE: bare_app(folder),
                BARE_STORING: bare_app(folder, make),
                STORE: partial(store_target, make),
                OURS: service(make, folder),
                WITHOUT_WORKERS: service(make, folder, settings={"memory.workers": "0"}),
            }
            if kind == "postgres":
                opening[TWO] = service(make, folder, instances=2)
            yield {
                name: partial(_sample, open_target, name != STORE, TARGETS[kind] / 2, seconds)
                for name, open_target in opening.items()
            }

    half = TARGETS[kind] / 2
    what = f"save conversations of 10 messages, {_CONNECTIONS} at once, and at {half:.0f} a second"
    return Measure(f"record-{kind}", what, _METRICS, repeats, open_all, (BARE_STORING, STORE), warm_up=False)


async def _sample(
    open_target: Callable[[], AbstractAsyncContextManager[Any]],
    by_http: bool,
    half: float,
    seconds: float,
) -> Sample:
    numbers = (_WARM_UP, int(half * seconds) + 1, int(_MOST * seconds))
    first, some, many = (_things(seed, number, by_http) for seed, number in enumerate(numbers))
    async with open_target() as target:
        load = partial(target.load, connections=_CONNECTIONS, seconds=seconds)
        await load(first)
        paced: Outcome = await load(some, rate=half)
        worked = target.processor_seconds()
        full: Outcome = await load(many)
        worked = target.processor_seconds() - worked
        return {
            "conversations": full.check().rate,
            "p50 at half load": paced.check().percentile(50),
            "p99 at half load": paced.percentile(99),
            "processor for each": worked / len(full.latencies),
            "longest block": await target.longest_block(),
            "late at half load": float(paced.unsent),
        }


def _things(seed: int, number: int, by_http: bool) -> list[Any]:
    """Conversations, as requests or as they are."""
    made = islice(bodies(seed, _USERS), number)
    return [encode("POST", "/v1/conversations", body) if by_http else body for body in made]
