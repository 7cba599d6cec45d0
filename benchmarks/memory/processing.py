"""Conversations per second, from recorded to remembered."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from itertools import count, islice
from time import perf_counter

from recollect.memory.database.entries import distinctive_terms
from recollect.memory.extraction import OpenAIExtractor
from recollect.memory.offline import OfflineExtractor
from recollect.memory.pipeline.stages import Extractor
from recollect.memory.store import MemoryStore

from ..harness import Measure, Metric, Sample, Sampler
from . import bare
from .bare import BARE
from .databases import Databases, Kind
from .extractors import InstantExtractor
from .helpers import API_KEY, provider
from .stores import OURS, open_store
from .texts import PAIRS, conversation, sentences

OFFLINE = "recollect, offline"
PROVIDER = "recollect, instant provider"

_RATE = (Metric("conversations", "/s", more_is_better=True),)
_AT_ONCE = 20  # recorded together, outside the clock


def process(databases: Databases, kind: Kind, workers: int, number: int, repeats: int) -> Measure:
    """Let workers learn from so many conversations of as many users, which are recorded before."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with AsyncExitStack() as stack:
            make = await stack.enter_async_context(databases.of_kind(kind))
            model = stack.enter_context(provider())
            asking = OpenAIExtractor(base_url=model.base_url, api_key=API_KEY)
            stack.push_async_callback(asking.aclose)
            database = await bare.open_bare(await make(), workers)
            stack.push_async_callback(database.close)
            samplers: dict[str, Sampler] = {BARE: _Bare(database, workers, number).sample}
            by_name: dict[str, Extractor] = {
                OURS: InstantExtractor(),
                OFFLINE: OfflineExtractor(),
                PROVIDER: asking,
            }
            for name, extractor in by_name.items():
                ours = _Ours(await make(), extractor, workers, number)
                await stack.enter_async_context(ours.recorder)
                samplers[name] = ours.sample
            yield samplers

    what = f"{number} conversations of as many users, from recorded to remembered, {workers} at a time"
    return Measure(f"process-{kind}-{workers}", what, _RATE, repeats, open_all, (BARE,))


def _conversations(seed: int) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Conversations without end, each of another user."""
    facts = sentences(seed)
    for number in count():
        yield f"user-{number}", conversation(list(islice(facts, PAIRS)))


class _Ours:
    """A store that records, and for each sample another on the same database that learns."""

    def __init__(self, place: str, extractor: Extractor, workers: int, number: int) -> None:
        self.recorder = open_store(place, workers=0)
        self._place = place
        self._extractor = extractor
        self._workers = workers
        self._number = number
        self._conversations = _conversations(2)

    async def sample(self) -> Sample:
        """Record outside the clock, and learn."""
        recorded: list[str] = []
        while len(recorded) < self._number:
            some = islice(self._conversations, min(_AT_ONCE, self._number - len(recorded)))
            stored = [self.recorder.record_conversation("agent", user, said) for user, said in some]
            recorded += [each.conversation_id for each in await asyncio.gather(*stored)]
        async with open_store(self._place, self._extractor, self._workers) as store:
            started = datetime.now(UTC)
            await store.drain()
            seconds = (await _last_end(store, recorded) - started).total_seconds()
        return {"conversations": self._number / seconds}


async def _last_end(store: MemoryStore, recorded: Sequence[str]) -> datetime:
    """When the last run ended, as the run tells it: `drain` looks only now and then."""
    ended = []
    for conversation_id in recorded:
        for run in await store.list_runs_of(conversation_id):
            if run.status != "done" or run.finished_at is None:
                raise AssertionError(f"a run is {run.status}")
            ended.append(run.finished_at)
    return max(ended)


class _Bare:
    """The same rows by the driver."""

    def __init__(self, database: bare.Bare, workers: int, number: int) -> None:
        self._database = database
        self._workers = workers
        self._number = number
        self._conversations = _conversations(2)
        self._terms = distinctive_terms(next(sentences(2)))

    async def sample(self) -> Sample:
        """Record outside the clock, and run."""
        for user, said in islice(self._conversations, self._number):
            await bare.record(self._database, user, said, queued=True)
        started = perf_counter()
        done = sum(await asyncio.gather(*(self._work() for _ in range(self._workers))))
        seconds = perf_counter() - started
        if done != self._number:
            raise AssertionError(f"{done} runs were done, and not {self._number}")
        return {"conversations": self._number / seconds}

    async def _work(self) -> int:
        done = 0
        while await bare.run_next(self._database, self._terms):
            done += 1
        return done
