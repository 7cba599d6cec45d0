"""Bytes in the database: of a message as it is recorded, and with all that is learned and indexed from it."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, closing
from functools import partial
from itertools import islice
from time import process_time
from typing import Any

import asyncpg

from recollect.memory.store import MemoryStore

from ..harness import Measure, Metric, Sample, Sampler
from ..memory.databases import Databases, Kind, MakeDatabase
from ..memory.stores import url_of
from .contenders import OURS
from .requests import bodies

_AT_ONCE = 8
_PER_USER = 10  # conversations
_LONGEST = 3000.0  # seconds to learn
_METRICS = (
    Metric("characters of a message", "", has_ratio=False),
    Metric("recorded, for each message", "KB", has_ratio=False),
    Metric("learned, for each message", "KB", has_ratio=False),
    Metric("entries of a conversation", "", has_ratio=False),
    Metric("learning, processor for each message", has_ratio=False),
)
_TO_INDEX = "SELECT count(*) FROM message_records WHERE head IS NULL OR vectors IS NULL"
_PAGES = ("page_count", "page_size")
_ENTRIES = "SELECT count(*) FROM memory_contents"
_TABLES = (
    "SELECT sum(pg_total_relation_size(oid)) FROM pg_class"
    " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
)


def weigh(databases: Databases, kind: Kind, conversations: int) -> Measure:
    """Record conversations of ten messages, ten of each user, learn from them, and weigh the tables."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with databases.of_kind(kind) as make:
            yield {OURS: partial(_sample, make, kind, conversations)}

    what = f"bytes of {conversations:,} conversations of 10 messages, with their indexes"
    return Measure(f"footprint-{kind}", what, _METRICS, 1, open_all, (OURS,), warm_up=False)


async def _sample(make: MakeDatabase, kind: Kind, conversations: int) -> Sample:
    place = await make()
    waiting = islice(bodies(7, conversations // _PER_USER), conversations)
    async with MemoryStore(url_of(place), embedder=None, workers=0, create_tables=True) as store:
        empty = await _bytes_of(place, kind)
        recorded = await asyncio.gather(*(_record(store, waiting) for _ in range(_AT_ONCE)))
    characters = [length for lengths in recorded for length in lengths]
    messages, bare, started = len(characters), await _bytes_of(place, kind), process_time()
    async with MemoryStore(url_of(place), workers=4) as store:
        store.start()
        await store.drain(_LONGEST)
        async with asyncio.timeout(_LONGEST):
            while await _count(store, _TO_INDEX):  # noqa: ASYNC110 - only the database knows
                await asyncio.sleep(1)
        entries = await _count(store, _ENTRIES)
    return {
        "characters of a message": sum(characters) / messages,
        "recorded, for each message": (bare - empty) / messages / 1000,
        "learned, for each message": (await _bytes_of(place, kind) - empty) / messages / 1000,
        "entries of a conversation": entries / conversations,
        "learning, processor for each message": (process_time() - started) / messages,
    }


async def _record(store: MemoryStore, waiting: Iterator[dict[str, Any]]) -> list[int]:
    lengths = []
    for body in waiting:
        await store.record_conversation(**body)
        lengths += [len(message["content"]) for message in body["messages"]]
    return lengths


async def _count(store: MemoryStore, query: str) -> int:
    return int((await store.monitor.fetch_rows(query))[0][0])


async def _bytes_of(place: str, kind: Kind) -> int:
    """What the tables and their indexes take on the disk."""
    if kind == "sqlite":
        with closing(sqlite3.connect(place)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            (pages,), (size,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in _PAGES)
        return int(pages * size)
    connection = await asyncpg.connect(place)
    try:
        await connection.execute("VACUUM ANALYZE")
        return int(await connection.fetchval(_TABLES) or 0)
    finally:
        await connection.close()
