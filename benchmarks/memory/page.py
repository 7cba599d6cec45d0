"""The page about a user: composed after a change, and read again unchanged, by how much is known."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import count, islice
from time import perf_counter

from recollect.memory.database import entries, memories
from recollect.memory.database.access import column_now
from recollect.memory.database.entries import Changes, NewEntry
from recollect.memory.database.memories import MemoryRow
from recollect.memory.entry import CONTENT_TYPES
from recollect.memory.store import MemoryStore
from recollect.sql.scripts import Script

from ..harness import Measure, Metric, Sample, Sampler
from .databases import Databases, Kind
from .growth import name_of
from .stores import open_store
from .texts import sentences, told

SIZES = (300, 1000, 10_000)
_METRICS = (
    Metric("composed"),
    Metric("unchanged"),
    Metric("share of lines changed", "%", has_ratio=False),
)
_FILLED_AT_ONCE = 500  # entries in a transaction
_AGENT, _USER = "agent", "user"


def page(databases: Databases, kind: Kind, sizes: Sequence[int], repeats: int) -> Measure:
    """Add an entry, then read the page, then read it again."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with AsyncExitStack() as stack:
            make = await stack.enter_async_context(databases.of_kind(kind))
            samplers: dict[str, Sampler] = {}
            for size in sizes:
                store = await stack.enter_async_context(open_store(await make(), workers=0))
                await _fill(store, size)
                samplers[name_of(size)] = partial(_sample, store, count(size))
            yield samplers

    what = "the page of 600 tokens after one more entry, and again without a change, by size of the memory"
    return Measure(f"page-{kind}", what, _METRICS, repeats, open_all, (name_of(sizes[0]),))


async def _sample(store: MemoryStore, numbers: "count[int]") -> Sample:
    before = await store.page(_AGENT, _USER)
    number = next(numbers)
    await store.add_entry(_AGENT, _USER, CONTENT_TYPES[number % 4], f"The user knows number {number}.")
    started = perf_counter()
    composed = await store.page(_AGENT, _USER)
    read = perf_counter()
    assert await store.page(_AGENT, _USER) is composed
    ended = perf_counter()
    added = len(composed.changes_since(before).added)
    share = 100 * added / len(composed.lines)
    return {"composed": read - started, "unchanged": ended - read, "share of lines changed": share}


async def _fill(store: MemoryStore, size: int) -> None:
    facts = list(islice(sentences(size), size))
    new = [NewEntry(CONTENT_TYPES[number % 4], told(fact)) for number, fact in enumerate(facts)]
    row = MemoryRow.new("default", _AGENT, _USER, column_now())
    for start in range(0, size, _FILLED_AT_ONCE):
        some = tuple(new[start : start + _FILLED_AT_ONCE])
        await store.memory_database.write(partial(_add, row, some))


def _add(row: MemoryRow, new: tuple[NewEntry, ...]) -> Script[None]:
    memory_id = yield from memories.find_or_make(row)
    yield from entries.change(row.tenant, memory_id, None, Changes(new), column_now())
