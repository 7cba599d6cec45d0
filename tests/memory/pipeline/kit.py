"""Helpers for the tests of runs."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from recollect.memory.conversation import Conversation
from recollect.memory.pipeline.runner import RunOptions
from recollect.memory.run import Run
from recollect.memory.store import MemoryStore

from ..databases import Place
from .extractors import ScriptedExtractor

QUICK = RunOptions(lease_seconds=20, attempts=3, backoff_seconds=0.01)
SHORT_LEASE = RunOptions(lease_seconds=0.6, attempts=3, backoff_seconds=0.01)
LONGEST = 60  # seconds that a test waits for what should take a few milliseconds


@asynccontextmanager
async def working(place: Place, **options: Any) -> AsyncIterator[tuple[MemoryStore, ScriptedExtractor]]:
    """A store whose workers ask a scripted extractor."""
    extractor = ScriptedExtractor()
    async with place.open(**{"workers": 1, "options": QUICK, "extractor": extractor, **options}) as store:
        yield store, extractor


def said(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in texts]


async def record(store: MemoryStore, text: str, user: str = "user", **more: Any) -> Conversation:
    return await store.record_conversation("agent", user, said(text), **more)


async def run_of(store: MemoryStore, conversation: Conversation) -> Run:
    runs = await store.list_runs_of(conversation.conversation_id)
    (run,) = (run for run in runs if run.kind == "learning")
    return run


async def when(store: MemoryStore, conversation: Conversation, **wanted: Any) -> Run:
    """The run of a conversation, as soon as its fields are so."""
    async with asyncio.timeout(LONGEST):
        while True:
            run = await run_of(store, conversation)
            if all(getattr(run, name) == value for name, value in wanted.items()):
                return run
            await asyncio.sleep(0.01)


async def failed_once(store: MemoryStore, conversation: Conversation, times: int = 1) -> Run:
    """The run of a conversation, as soon as it has failed so often."""
    async with asyncio.timeout(LONGEST):
        while len((run := await run_of(store, conversation)).failures) < times:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        return run


async def known_texts(store: MemoryStore, user: str = "user") -> Sequence[str]:
    """The texts of the known events, in their order."""
    memory = await store.get_memory("agent", user)
    return [] if memory is None else memory.event_content
