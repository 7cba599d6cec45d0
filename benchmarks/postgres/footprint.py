"""Many live sessions: the connections they take, and how many of them fail."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from time import perf_counter
from typing import Any

import asyncpg

from ..harness import Measure, Metric, Sample, Sampler
from ..processes import Parent, call_in_process
from ..shared.stores import short
from ..shared.tasks import ERRORS
from .contenders import BASELINES, OURS, RAW, SDK, SDK_BY_URL, use_as
from .databases import Databases

_ITEMS_OF_LIVE = 5


def live_sessions(databases: Databases, number: int, repeats: int) -> Measure:
    """How many connections so many sessions hold that are used at once, and how many of them fail."""
    ids = [f"conversation-{n}" for n in range(number)]

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(databases.server())
            samplers: dict[str, Sampler] = {}
            for name in (OURS, SDK, SDK_BY_URL, RAW):
                histories = dict.fromkeys(ids, _ITEMS_OF_LIVE)
                database: Any = await stack.enter_async_context(databases.filled(OURS, server, histories))
                samplers[name] = partial(_hold_elsewhere, name, server, database._tables, ids)
            yield samplers

    metrics = (Metric("connections", "", has_ratio=False), ERRORS, Metric("time"))
    what = f"{number:,} live sessions of one URL that all read at once, and stay"
    return Measure(f"live-{short(number)}", what, metrics, repeats, open_all, BASELINES, warm_up=False)


async def _hold_elsewhere(contender: str, url: str, tables: dict[str, Any], ids: list[str]) -> Sample:
    sample: Sample = call_in_process(_hold, contender, url, tables, ids)
    return sample


def _hold(_: Parent, contender: str, url: str, tables: dict[str, Any], ids: list[str]) -> Sample:
    return asyncio.run(_hold_in_loop(contender, url, tables, ids))


async def _hold_in_loop(contender: str, url: str, tables: dict[str, Any], ids: list[str]) -> Sample:
    watcher = await asyncpg.connect(url)
    database = await use_as(contender, url, tables)
    started = perf_counter()
    sessions = [database.session(session_id) for session_id in ids]
    read = await asyncio.gather(*(session.get_items() for session in sessions), return_exceptions=True)
    seconds = perf_counter() - started
    errors = sum(1 for items in read if isinstance(items, BaseException) or len(items) != _ITEMS_OF_LIVE)
    connections = await watcher.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    )
    for session in sessions:
        await database.close_session(session)
    await database.close()
    await watcher.close()
    return {"connections": connections - 1, "errors": errors, "time": seconds}
