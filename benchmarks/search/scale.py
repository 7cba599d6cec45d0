"""How long a search takes by the size of a user's conversations, and how much memory it needs.

Each sample is a new process: it opens the store, loads the embedder, and searches for the first time. The
messages and their search records are written directly. The vectors of the messages are random, so that
setting up takes minutes and not hours; questions are embedded.
"""

import asyncio
import gc
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection
from statistics import median
from time import perf_counter
from typing import Any

import psutil

from recollect.memory.conversation import Conversation, Message
from recollect.memory.database import conversations, memories, records
from recollect.memory.database.access import MemoryDatabase, column_now
from recollect.memory.database.memories import MemoryRow
from recollect.memory.database.records import RecordQueries, StoredRecord
from recollect.memory.database.vectors import model_of
from recollect.memory.search.embedders.local import local_embedder
from recollect.memory.search.records import Record
from recollect.memory.store import MemoryStore
from recollect.sql.scripts import Script, Statement

from ..harness import Measure, Metric, Sample, Sampler
from ..memory.databases import Databases, Kind
from ..memory.stores import url_of
from ..processes import Worker
from .chats import MESSAGES, Chats

_METRICS = (
    Metric("first"),
    Metric("warm"),
    Metric("recall"),
    Metric("after one more"),
    Metric("memory per message", "B"),
)
_AGENT, _USER, _TENANT = "agent", "user", "default"
_WARM, _MORE = 15, 5
_REST = 1.0  # seconds after the first search, in which the corpus is sorted, for each 20,000 messages


def scale(databases: Databases, kind: Kind, sizes: Sequence[int], repeats: int) -> Measure:
    """Search by the number of messages of the user."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with databases.of_kind(kind) as make:
            places = {size: await make() for size in sizes}
            chats = Chats(local_embedder().dimensions)
            for size, place in places.items():
                await _fill(place, chats, size)
            yield {name_of(size): partial(_sample, place, size) for size, place in places.items()}

    what = "search the conversations of a user: after a restart, warm, by recall, and after one more message"
    return Measure(f"scale-{kind}", what, _METRICS, repeats, open_all, (name_of(sizes[0]),), warm_up=False)


def name_of(size: int) -> str:
    """A contender: the conversations of a user, of a size."""
    return f"{size:,} messages"


async def _sample(place: str, size: int) -> Sample:
    with Worker(_measure, place, size) as worker:
        found: Sample = await asyncio.to_thread(worker.receive)
    return found


def _measure(_: Connection, place: str, size: int) -> dict[str, float]:
    return asyncio.run(_search(place, size))


async def _search(place: str, size: int) -> dict[str, float]:
    embedder, process = local_embedder(), psutil.Process()
    await embedder.embed(["hello"])
    chats = Chats(embedder.dimensions)
    async with MemoryStore(url_of(place), embedder=embedder, workers=0) as store:
        await store.search_conversations("hello", _AGENT, "nobody")
        gc.collect()
        before = process.memory_info().rss
        first = await _time(store, chats)
        gc.collect()
        used = process.memory_info().rss - before
        await asyncio.sleep(_REST * (1 + size / 20_000))
        warm = median([await _time(store, chats) for _ in range(_WARM)])
        recall = median([await _time_recall(store, chats) for _ in range(_WARM)])
        more = []
        for _ in range(_MORE):
            said = [{"role": "user", "content": chats.question()}]
            await store.record_conversation(_AGENT, _USER, said)
            more.append(await _time(store, chats))
    return {
        "first": first,
        "warm": warm,
        "recall": recall,
        "after one more": median(more),
        "memory per message": used / size,
    }


async def _time(store: MemoryStore, chats: Chats) -> float:
    question, began = chats.question(), perf_counter()
    found = await store.search_conversations(question, _AGENT, _USER)
    took = perf_counter() - began
    if len(found.hits) != 10:
        raise AssertionError(f"{len(found.hits)} hits instead of 10: {found.warnings}")
    return took


async def _time_recall(store: MemoryStore, chats: Chats) -> float:
    question, began = chats.question(), perf_counter()
    found = await store.recall(question, _AGENT, _USER, min_relevance=0)
    took = perf_counter() - began
    if not found.is_found:
        raise AssertionError(f"an empty block: {found.warnings}")
    return took


# --- setting up ---


async def _fill(place: str, chats: Chats, size: int) -> None:
    database = MemoryDatabase(url_of(place), create_tables=True)
    owner = MemoryRow.new(_TENANT, _AGENT, _USER, column_now())
    memory_id = await database.write(partial(memories.find_or_make, owner))
    queries, model = RecordQueries(database.dialect), model_of(local_embedder())
    left = chats.messages(size)
    for number in range(-(-size // MESSAGES)):
        some = list(islice(left, MESSAGES))
        await database.write(partial(_record, queries, memory_id, f"c{number}", some, model))
    counts = await database.fetch(queries.count, (memory_id,), lambda rows: int(rows[0][0]))
    if counts != size:
        raise AssertionError(f"{counts} records instead of {size}")
    await database.aclose()


def _record(
    queries: RecordQueries, memory_id: str, name: str, said: Sequence[tuple[Message, Record]], model: str
) -> Script[Any]:
    conversation = Conversation(_AGENT, _USER, [message for message, _ in said], conversation_id=name)
    yield from conversations.add(_TENANT, conversation, memory_id, column_now())
    placed = zip(conversation.messages, said, strict=True)
    made = [StoredRecord((name, message.message_id), record) for message, (_, record) in placed]
    yield from records.write(queries, made, {each.key: memory_id for each in made}, model)
    yield Statement(
        "UPDATE conversation_messages SET vector_model = ?2, vector_dimension = 0 WHERE conversation_id = ?1",
        (name, model),
    )
