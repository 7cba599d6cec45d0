"""Beside other designs, all with the same model, which answers at once, in a process of its own."""

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

from recollect.memory.extraction import OpenAIExtractor
from recollect.memory.store import MemoryStore

from ..harness import Measure, Metric, Sample, Sampler
from .databases import Databases
from .helpers import API_KEY, Helper, Provider, provider
from .inline import InlineMemory
from .stores import OURS, open_store
from .texts import PAIRS, conversation, sentences

INLINE = "inline, SDK and SQLite"
MEM0 = "mem0"
MEM0_PYTHON = "RECOLLECT_BENCH_MEM0_PYTHON"

_METRICS = (
    Metric("acknowledged"),
    Metric("remembered"),
    Metric("without the provider"),
    Metric("requests", "", has_ratio=False),
)
_USER = "user"
_SCRIPT = Path(__file__).with_name("mem0_process.py")

Times: TypeAlias = tuple[float, float]
"""Seconds until the caller goes on, and until it is remembered."""
Learn: TypeAlias = Callable[[list[dict[str, str]]], Awaitable[Times]]


def peers(databases: Databases, repeats: int) -> Measure:
    """A conversation at a time, of one user: until the caller can go on, and until it is remembered."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with AsyncExitStack() as stack:
            model = stack.enter_context(provider())
            learners = {
                OURS: await _ours(stack, databases, model),
                INLINE: await _inline(stack, databases, model),
            }
            if MEM0_PYTHON in os.environ:
                learners[MEM0] = await _mem0(stack, databases, model)
            else:
                print(f"LEFT OUT: mem0, for {MEM0_PYTHON} names no Python that has it (see README.md)\n")
            yield {name: _Sampler(learn, model).sample for name, learn in learners.items()}

    what = "a conversation of 10 messages, in local files, with a model over HTTP that answers at once"
    return Measure("peers", what, _METRICS, repeats, open_all, (OURS,))


class _Sampler:
    """Samples of one contender, who has the provider for itself meanwhile."""

    def __init__(self, learn: Learn, model: Provider) -> None:
        self._learn = learn
        self._model = model
        self._facts = sentences(3)

    async def sample(self) -> Sample:
        """Learn from one conversation."""
        said = conversation(list(islice(self._facts, PAIRS)))
        before = self._model.figures()
        acknowledged, remembered = await self._learn(said)
        after = self._model.figures()
        return {
            "acknowledged": acknowledged,
            "remembered": remembered,
            "without the provider": remembered - (after.seconds - before.seconds),
            "requests": after.requests - before.requests,
        }


async def _ours(stack: AsyncExitStack, databases: Databases, model: Provider) -> Learn:
    extractor = OpenAIExtractor(base_url=model.base_url, api_key=API_KEY)
    stack.push_async_callback(extractor.aclose)
    store = await stack.enter_async_context(open_store(await databases.file(), extractor))

    async def learn(said: list[dict[str, str]]) -> Times:
        began, started = datetime.now(UTC), perf_counter()
        recorded = await store.record_conversation("agent", _USER, said)
        acknowledged = perf_counter() - started
        await store.drain()
        return acknowledged, (await _end_of(store, recorded.conversation_id) - began).total_seconds()

    return learn


async def _end_of(store: MemoryStore, conversation_id: str) -> datetime:
    (run,) = await store.list_runs_of(conversation_id)
    if run.status != "done" or run.finished_at is None:
        raise AssertionError(f"a run is {run.status}")
    return run.finished_at


async def _inline(stack: AsyncExitStack, databases: Databases, model: Provider) -> Learn:
    memory = InlineMemory(await databases.file(), model.base_url)
    stack.push_async_callback(memory.aclose)

    async def learn(said: list[dict[str, str]]) -> Times:
        started = perf_counter()
        await memory.add(_USER, said)
        seconds = perf_counter() - started
        return seconds, seconds

    return learn


async def _mem0(stack: AsyncExitStack, databases: Databases, model: Provider) -> Learn:
    folder = f"{await databases.file()}.mem0"
    command = [os.environ[MEM0_PYTHON], str(_SCRIPT), folder, model.base_url, API_KEY]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    helper = Helper(command, environment)
    stack.callback(helper.end)
    print(f"mem0 {helper.read()}", file=sys.stderr)

    async def learn(said: list[dict[str, str]]) -> Times:
        answer = helper.ask({"user": _USER, "messages": said})
        if not answer["added"]:
            raise AssertionError("mem0 has added nothing")
        return answer["seconds"], answer["seconds"]

    return learn
