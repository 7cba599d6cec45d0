"""Many live sessions, and the connections they take."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from time import perf_counter

from recollect.testing.servers.redis import RedisServer

from ..harness import Measure, Metric, Sample, Sampler
from ..processes import Parent, call_in_process
from ..shared.items import make_items
from ..shared.stores import check_read, short
from .contenders import BASELINES, CONTENDERS, fill, use_as

_ITEMS_OF_LIVE = 5


def live_sessions(number: int, repeats: int) -> Measure:
    """How many connections so many sessions hold, each used once."""
    ids = [f"conversation-{n}" for n in range(number)]

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        with RedisServer(settings={"maxclients": 20_000}) as server:
            for session_id in ids:
                await fill(server.url, session_id, make_items(_ITEMS_OF_LIVE))
            yield {name: partial(_hold_elsewhere, name, server, ids) for name in CONTENDERS}

    metrics = (Metric("connections", "", has_ratio=False), Metric("time"))
    what = f"{number:,} live sessions, each used once: connections, and the time to make and use them"
    return Measure(f"live-{short(number)}", what, metrics, repeats, open_all, BASELINES, warm_up=False)


async def _hold_elsewhere(contender: str, server: RedisServer, ids: list[str]) -> Sample:
    sample: Sample = call_in_process(_hold, contender, server.url, ids)
    return sample


def _hold(_: Parent, contender: str, url: str, ids: list[str]) -> Sample:
    return asyncio.run(_hold_in_loop(contender, url, ids))


async def _hold_in_loop(contender: str, url: str, ids: list[str]) -> Sample:
    import redis.asyncio

    watcher = redis.asyncio.from_url(url)
    server = use_as(contender, url)
    before = int((await watcher.info("clients"))["connected_clients"])
    started = perf_counter()
    sessions = [server.session(session_id) for session_id in ids]
    for session in sessions:
        check_read(contender, await session.get_items(), _ITEMS_OF_LIVE)
    seconds = perf_counter() - started
    connections = int((await watcher.info("clients"))["connected_clients"]) - before
    for session in sessions:
        await server.close_session(session)
    await server.close()
    await watcher.aclose()
    return {"connections": connections, "time": seconds}
