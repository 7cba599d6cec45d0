"""The pipeline's own cost of a conversation, by how much is known of its user."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import count, islice
from time import perf_counter

from recollect.memory.database import entries, memories
from recollect.memory.database.access import MemoryDatabase, column_now
from recollect.memory.database.entries import Changes, NewEntry
from recollect.memory.database.memories import MemoryRow
from recollect.memory.pipeline.runner import Runner, RunOptions
from recollect.sql.scripts import Script

from ..harness import Measure, Metric, Sample, Sampler
from .databases import Databases, Kind, MakeDatabase
from .extractors import ChangingExtractor
from .stores import open_store, url_of
from .texts import PAIRS, conversation, sentences, told

_METRICS = (Metric("whole"), Metric("record"), Metric("run"))
_FILLED_AT_ONCE = 500  # entries in a transaction
_SMALL = 1000  # below that, a memory is a new one for each sample, or it would not stay small
_NEW = PAIRS - 2
_TENANT, _AGENT = "default", "agent"


def growth(databases: Databases, kind: Kind, sizes: Sequence[int], repeats: int) -> Measure:
    """Record a conversation and learn from it: five candidates, one known, one that changes what is known."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with AsyncExitStack() as stack:
            make = await stack.enter_async_context(databases.of_kind(kind))
            users = [await _user(stack, make, size) for size in sizes]
            yield {name_of(user.size): user.sample for user in users}
            for user in users:
                await user.check()

    what = "record a conversation with 5 facts and learn from it, without the model, by size of the memory"
    return Measure(f"growth-{kind}", what, _METRICS, repeats, open_all, (name_of(sizes[0]),))


def name_of(size: int) -> str:
    """A contender: a memory of a size."""
    return f"{size:,} entries"


async def _user(stack: AsyncExitStack, make: MakeDatabase, size: int) -> "_User":
    user = _User(await make(), size)
    stack.push_async_callback(user.database.aclose)
    await stack.enter_async_context(user.store)
    if size >= _SMALL:
        await user.fill()
    return user


class _User:
    """Somebody of whom something is known, and a pipeline that is driven by hand, so that nobody waits."""

    def __init__(self, place: str, size: int) -> None:
        self.size = size
        self.store = open_store(place, workers=0)
        self.database = MemoryDatabase(url_of(place), create_tables=True)
        self._runner = Runner(self.database, ChangingExtractor(), RunOptions())
        self._facts = sentences(size)
        self._numbers = count()
        self._known: list[str] = []
        self._samples = 0

    async def fill(self) -> None:
        """Know so much of a new user, and nothing more."""
        self._name = f"user-{next(self._numbers)}"
        self._known = list(islice(self._facts, self.size))
        self._samples = 0
        for start in range(0, self.size, _FILLED_AT_ONCE):
            some = [NewEntry("event", told(fact)) for fact in self._known[start : start + _FILLED_AT_ONCE]]
            row = MemoryRow.new(_TENANT, _AGENT, self._name, column_now())
            await self.database.write(partial(_add, row, some))

    async def sample(self) -> Sample:
        """Record a conversation, and do its run at once."""
        if self.size < _SMALL:
            await self.fill()
        said = conversation(self._said())
        started = perf_counter()
        await self.store.record_conversation(_AGENT, self._name, said)
        recorded = perf_counter()
        task = await self._runner.claim("lease")
        assert task is not None
        await self._runner.execute(task)
        ended = perf_counter()
        self._samples += 1
        return {"whole": ended - started, "record": recorded - started, "run": ended - recorded}

    def _said(self) -> list[str]:
        """One fact that is known, one that changes what is known, and new ones."""
        changed = self._known.pop(self._samples * 7 % (len(self._known) - 1))
        again = self._known[-1]
        new = list(islice(self._facts, _NEW))
        return [again, f"{changed.rpartition(' ')[0]} elsewhere", *new]

    async def check(self) -> None:
        """Nobody wins by learning less: of five facts three are more, and one stands for another."""
        memory = await self.store.get_memory(_AGENT, self._name)
        held = 0 if memory is None else len(memory.event_content)
        expected = self.size + _NEW * self._samples
        if held != expected:
            raise AssertionError(f"a memory holds {held:,} entries and not {expected:,}")


def _add(row: MemoryRow, some: Sequence[NewEntry]) -> Script[None]:
    memory_id = yield from memories.find_or_make(row)
    yield from entries.change(row.tenant, memory_id, None, Changes(tuple(some)), row.created_at)
