"""Searches over a user's entries: how many in a second, and how long one takes at a steady rate."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from recollect.memory.database import entries, memories
from recollect.memory.database.access import MemoryDatabase, column_now
from recollect.memory.database.entries import Changes, NewEntry
from recollect.memory.database.memories import MemoryRow
from recollect.memory.store import MemoryStore
from recollect.sql.scripts import Script

from ..harness import Measure, Metric, Sample, Sampler
from ..memory.databases import Databases, Kind, MakeDatabase
from ..memory.stores import url_of
from ..memory.texts import sentences, told
from .contenders import OURS, STORE, TWO, StoreTarget, service, store_target
from .load import Outcome
from .requests import AGENT, questions, search

_CONNECTIONS = 8
_USERS = 5
_FILLED_AT_ONCE = 500  # entries in a transaction
_MOST = 1000.0  # a second: more requests are not made in advance
_RATE = 40.0  # a second, for the latencies
_METRICS = (
    Metric("searches", "/s", more_is_better=True),
    Metric("p50 at a steady rate"),
    Metric("p99 at a steady rate"),
    Metric("processor for each"),
    Metric("longest block"),
)


def find(databases: Databases, kind: Kind, folder: Path, size: int, seconds: float, repeats: int) -> Measure:
    """Search what is known of users, of each so many entries."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with databases.of_kind(kind) as make:
            filled = await _filled(make, size)
            opening: dict[str, Callable[[], AbstractAsyncContextManager[Any]]] = {
                STORE: partial(_store, filled),
                OURS: service(filled, folder),
            }
            if kind == "postgres":
                opening[TWO] = service(filled, folder, instances=2)
            yield {name: partial(_sample, each, name != STORE, seconds) for name, each in opening.items()}

    what = f"search {size:,} entries of a user, {_CONNECTIONS} at once, and at {_RATE:.0f} a second"
    return Measure(f"search-{kind}", what, _METRICS, repeats, open_all, (STORE,), warm_up=False)


async def _sample(
    open_target: Callable[[], AbstractAsyncContextManager[Any]], by_http: bool, seconds: float
) -> Sample:
    # The first ones are so many that every user has been asked about.
    numbers = (_USERS * _CONNECTIONS, int(_RATE * seconds) + 1, int(_MOST * seconds))
    first, some, many = (_things(seed, number, by_http) for seed, number in enumerate(numbers))
    async with open_target() as target:
        load = partial(target.load, connections=_CONNECTIONS, seconds=seconds)
        await load(first)
        paced: Outcome = await load(some, rate=_RATE)
        worked = target.processor_seconds()
        full: Outcome = await load(many)
        worked = target.processor_seconds() - worked
        return {
            "searches": full.check().rate,
            "p50 at a steady rate": paced.check().percentile(50),
            "p99 at a steady rate": paced.percentile(99),
            "processor for each": worked / len(full.latencies),
            "longest block": await target.longest_block(),
        }


def _things(seed: int, number: int, by_http: bool) -> list[Any]:
    asked: Iterator[tuple[str, str]] = zip(
        cycle(map(_user, range(_USERS))), questions(seed + 1), strict=False
    )
    return [search(user, query) if by_http else (user, query) for user, query in islice(asked, number)]


def _user(number: int) -> str:
    return f"known-{number}"


# --- without HTTP ---


class _Searched(StoreTarget):
    """A store in this process that is searched."""

    async def ask(self, thing: Any) -> None:
        """Search."""
        user, query = thing
        await self.store.search_memories(query, AGENT, user, limit=10)


@asynccontextmanager
async def _store(make: MakeDatabase) -> AsyncIterator[StoreTarget]:
    async with store_target(make, _Searched, embedder="local") as target:
        yield target


# --- what is known ---


async def _filled(make: MakeDatabase, size: int) -> MakeDatabase:
    """A database in which so much is known of some users, with vectors; it is only read, so one does."""
    place = await make()
    database = MemoryDatabase(url_of(place), create_tables=True)
    for number in range(_USERS):
        facts = list(islice(sentences(100 + number), size))
        for start in range(0, size, _FILLED_AT_ONCE):
            some = [NewEntry("event", told(fact)) for fact in facts[start : start + _FILLED_AT_ONCE]]
            await database.write(
                partial(_add, MemoryRow.new("default", AGENT, _user(number), column_now()), some)
            )
    await database.aclose()
    async with MemoryStore(url_of(place), workers=0, create_tables=True) as store:
        await store.embed_pending()

    async def the_same() -> str:
        return place

    return the_same


def _add(row: MemoryRow, some: list[NewEntry]) -> Script[None]:
    memory_id = yield from memories.find_or_make(row)
    yield from entries.change(row.tenant, memory_id, None, Changes(tuple(some)), row.created_at)
