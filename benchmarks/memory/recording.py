"""What it takes until a conversation is safe: at rest, while workers learn, and while a model is silent."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import count, islice

from recollect.memory.extraction import OpenAIExtractor
from recollect.memory.manager import ConversationManager
from recollect.memory.offline import OfflineExtractor
from recollect.memory.pipeline.stages import Extractor
from recollect.memory.store import MemoryStore

from ..harness import Measure, Metric, Sample, Sampler, timed
from . import bare
from .bare import BARE
from .databases import Databases, Kind, MakeDatabase
from .helpers import API_KEY, provider
from .stores import OURS, open_store, url_of
from .texts import PAIRS, conversation, sentences

OURS_SYNC = "recollect, synchronous"
OURS_BUSY = "recollect, workers busy"
OURS_WAITING = "recollect, model silent"

_TIME = (Metric("time"),)
_WAITING = 8  # conversations that keep the workers busy meanwhile
_USERS = 100
_FOREVER = 3600.0  # seconds


def record(databases: Databases, kind: Kind, repeats: int) -> Measure:
    """Record a conversation of ten messages."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with AsyncExitStack() as stack:
            make = await stack.enter_async_context(databases.of_kind(kind))
            samplers = {BARE: await _bare(stack, make), OURS: await _idle(stack, make)}
            if kind == "sqlite":
                samplers[OURS_SYNC] = await _synchronous(stack, make)
            samplers[OURS_BUSY] = await _busy(stack, make)
            samplers[OURS_WAITING] = await _waiting(stack, make)
            yield samplers

    what = "record a conversation of 10 messages of about 200 characters"
    return Measure(f"record-{kind}", what, _TIME, repeats, open_all, (BARE,))


Write = Callable[[str, list[dict[str, str]]], Awaitable[object]]


class _Recorder:
    """Records other conversations again and again, each for the next user."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._facts = sentences(1)
        self._numbers = count()

    async def one(self) -> None:
        """Record one."""
        user = f"user-{next(self._numbers) % _USERS}"
        await self._write(user, conversation(list(islice(self._facts, PAIRS))))

    async def sample(self) -> Sample:
        """The time that one takes."""
        return {"time": await timed(self.one)}


def _recorder(store: MemoryStore) -> _Recorder:
    return _Recorder(partial(store.record_conversation, "agent"))


async def _bare(stack: AsyncExitStack, make: MakeDatabase) -> Sampler:
    database = await bare.open_bare(await make())
    stack.push_async_callback(database.close)
    return _Recorder(partial(bare.record, database)).sample


async def _idle(stack: AsyncExitStack, make: MakeDatabase) -> Sampler:
    store = await stack.enter_async_context(open_store(await make(), workers=0))
    return _recorder(store).sample


async def _synchronous(stack: AsyncExitStack, make: MakeDatabase) -> Sampler:
    manager = stack.enter_context(ConversationManager(url_of(await make()), workers=0))

    async def write(user: str, messages: list[dict[str, str]]) -> None:
        manager.record_conversation("agent", user, messages)

    return _Recorder(write).sample


async def _busy(stack: AsyncExitStack, make: MakeDatabase) -> Sampler:
    """While the workers of this process learn by rule, which takes all of a processor."""
    store = await stack.enter_async_context(open_store(await make(), OfflineExtractor()))
    recorder = _recorder(store)

    async def sample() -> Sample:
        for _ in range(_WAITING):
            await recorder.one()
        taken = await recorder.sample()
        if not (await store.coverage()).pending:
            raise AssertionError("the workers had nothing to do meanwhile")
        await store.drain()  # so that nobody else pays for it
        return taken

    return sample


async def _waiting(stack: AsyncExitStack, make: MakeDatabase) -> Sampler:
    """While the workers wait for a model that never answers."""
    silent = stack.enter_context(provider("hold"))
    extractor: Extractor = OpenAIExtractor(base_url=silent.base_url, api_key=API_KEY, timeout=_FOREVER)
    stack.push_async_callback(extractor.aclose)
    store = await stack.enter_async_context(open_store(await make(), extractor))
    return _recorder(store).sample
