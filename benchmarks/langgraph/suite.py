"""The measures of this suite, and how large and how often each is run."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from ..harness import Measure, Metric, Sample, Sampler, Suite
from .contenders import CONTENDERS, OFFICIAL, OURS, OURS_POSTGRES, Thread, opened, talk

RAW = "raw read"
BASELINES = (OFFICIAL,)
THREADS = 64


@dataclass(frozen=True)
class Scale:
    """Sizes in messages, and how often things are repeated."""

    sizes: tuple[int, ...]
    repeats: int
    reads: int
    grown: int
    rounds: int


FULL = Scale(sizes=(10, 1000, 10_000), repeats=30, reads=9, grown=1000, rounds=5)
QUICK = Scale(sizes=(10, 1000), repeats=3, reads=2, grown=50, rounds=1)


def build(directory: Path, quick: bool) -> Suite:
    """The suite, with its files in a directory; PostgreSQL makes a folder of its own."""
    scale = QUICK if quick else FULL
    measures = [
        *(step(directory, size, scale.repeats) for size in scale.sizes),
        *(get_newest(directory, size, scale.reads) for size in scale.sizes),
        concurrent(directory, scale.rounds),
        stall(directory, scale.sizes[-1], scale.rounds),
        growth(directory, scale.grown),
    ]
    return Suite("langgraph", OURS, CONTENDERS, BASELINES, measures)


def step(directory: Path, size: int, repeats: int) -> Measure:
    """A durable step on a thread of so many messages."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with opened(directory) as savers:
            threads = {name: Thread(saver) for name, saver in savers.items()}
            for thread in threads.values():
                await thread.begin(talk(size))
            yield {name: partial(_time_steps, thread) for name, thread in threads.items()}

    metrics = (Metric("as LangGraph submits them"), Metric("one after the other"))
    what = f"put and put_writes of a step that adds 2 messages to {size:,}"
    return Measure(f"step-{size}", what, metrics, repeats, open_all, BASELINES)


async def _time_steps(thread: Thread) -> Sample:
    writes, put = thread.next()
    started = perf_counter()
    await asyncio.gather(writes, put)
    together = perf_counter() - started
    writes, put = thread.next()
    started = perf_counter()
    await writes
    await put
    return {"as LangGraph submits them": together, "one after the other": perf_counter() - started}


def get_newest(directory: Path, size: int, repeats: int) -> Measure:
    """Reading the newest checkpoint of a thread."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with opened(directory) as savers:
            threads = {name: Thread(saver) for name, saver in savers.items()}
            for thread in threads.values():
                await thread.begin(talk(size))
            samplers: dict[str, Sampler] = {name: partial(_time_get, each) for name, each in threads.items()}
            path = savers[OURS]._tables._database.engine.path
            yield samplers | {RAW: partial(_time_raw, path, size)}

    what = f"get_tuple of the newest checkpoint with {size:,} messages"
    return Measure(
        f"get-{size}", what, (Metric("get_tuple"),), repeats, open_all, (OFFICIAL, RAW), collect=True
    )


async def _time_get(thread: Thread) -> Sample:
    config = {"configurable": {"thread_id": thread.config["configurable"]["thread_id"], "checkpoint_ns": ""}}
    started = perf_counter()
    found = await thread.saver.aget_tuple(config)
    seconds = perf_counter() - started
    assert found is not None
    assert found.checkpoint["channel_values"]["messages"] == thread.messages
    return {"get_tuple": seconds}


async def _time_raw(path: str, size: int) -> Sample:
    """Read our rows with sqlite3 alone, and decode each."""
    serde = JsonPlusSerializer(allowed_msgpack_modules=None)
    with closing(sqlite3.connect(path)) as connection:
        started = perf_counter()
        rows = connection.execute("SELECT kind, value FROM langgraph_items ORDER BY position").fetchall()
        items = [serde.loads_typed(row) for row in rows]
        seconds = perf_counter() - started
    assert len(items) == size
    return {"get_tuple": seconds}


def concurrent(directory: Path, repeats: int) -> Measure:
    """Steps per second of many threads at once."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with opened(directory) as savers:
            threads = {name: [Thread(saver) for _ in range(THREADS)] for name, saver in savers.items()}
            for each in (thread for some in threads.values() for thread in some):
                await each.begin(talk(20))
            yield {name: partial(_count_steps, some) for name, some in threads.items()}

    metric = Metric("steps per second", "", more_is_better=True)
    what = f"{THREADS} threads store 3 steps each at the same time"
    return Measure(f"threads-{THREADS}", what, (metric,), repeats, open_all, BASELINES)


async def _count_steps(threads: list[Thread]) -> Sample:
    async def run(thread: Thread) -> None:
        for _ in range(3):
            await asyncio.gather(*thread.next())

    started = perf_counter()
    await asyncio.gather(*map(run, threads))
    return {"steps per second": 3 * len(threads) / (perf_counter() - started)}


def stall(directory: Path, size: int, repeats: int) -> Measure:
    """How long a saver keeps everything else on the event loop waiting."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with opened(directory) as savers:
            yield {name: partial(_stalls, saver, size) for name, saver in savers.items()}

    names = ("first checkpoint", "a step", "get_tuple")
    what = f"the longest time between two ticks of the event loop, with {size:,} messages"
    return Measure(f"stall-{size}", what, tuple(map(Metric, names)), repeats, open_all, BASELINES)


async def _stalls(saver: Any, size: int) -> Sample:
    thread = Thread(saver)
    messages = talk(size)
    first = await _longest_stall(lambda: thread.begin(messages))
    writes, put = thread.next()
    following = await _longest_stall(lambda: asyncio.gather(writes, put))
    config = {"configurable": {"thread_id": thread.config["configurable"]["thread_id"], "checkpoint_ns": ""}}
    reading = await _longest_stall(lambda: saver.aget_tuple(config))
    return {"first checkpoint": first, "a step": following, "get_tuple": reading}


async def _longest_stall(call: Callable[[], Awaitable[object]]) -> float:
    longest, last = 0.0, perf_counter()

    async def tick() -> None:
        nonlocal longest, last
        while True:
            await asyncio.sleep(0.001)
            now = perf_counter()
            longest, last = max(longest, now - last), now

    ticking = asyncio.ensure_future(tick())
    await asyncio.sleep(0.02)
    longest = 0.0
    await call()
    await asyncio.sleep(0.005)
    ticking.cancel()
    return longest


def growth(directory: Path, steps: int) -> Measure:
    """What is stored after many steps."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with opened(directory) as savers:
            yield {name: partial(_measure_growth, saver, name, steps) for name, saver in savers.items()}

    metric = Metric("stored bytes", "B")
    what = f"a thread of {steps:,} steps that add 2 messages each"
    return Measure(f"stored-{steps}", what, (metric,), 1, open_all, BASELINES, warm_up=False)


async def _measure_growth(saver: Any, name: str, steps: int) -> Sample:
    thread = Thread(saver)
    await thread.begin(talk(2))
    for _ in range(steps):
        await asyncio.gather(*thread.next())
    return {"stored bytes": await _stored_bytes(saver, name)}


async def _stored_bytes(saver: Any, name: str) -> float:
    if name == OURS:
        return _file_bytes(saver._tables._database.engine.path)
    if name == OFFICIAL:
        cursor = await saver.conn.execute("PRAGMA database_list")
        return _file_bytes((await cursor.fetchone())[2])
    tables = (
        "LIKE 'langgraph%'"
        if name == OURS_POSTGRES
        else "IN ('checkpoints', 'checkpoint_blobs', 'checkpoint_writes')"
    )
    sizes = "SELECT sum(pg_total_relation_size(oid)) AS size FROM pg_class"
    sql = f"{sizes} WHERE relkind = 'r' AND relname {tables}"
    if name == OURS_POSTGRES:
        return await saver._tables.fetch(sql, (), lambda rows: float(rows[0][0]))
    cursor = await saver.conn.execute(sql)
    return float((await cursor.fetchone())["size"])


def _file_bytes(path: str) -> float:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ((pages,),) = connection.execute("PRAGMA page_count")
        ((size,),) = connection.execute("PRAGMA page_size")
    return float(pages * size)
