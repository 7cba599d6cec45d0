"""Many at once on one server: tasks on sessions of their own, writers on one session, live sessions."""

import asyncio
import statistics
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from time import perf_counter

from recollect.testing.servers.redis import RedisServer

from ..harness import Measure, Metric, OpenMeasure, Sample, Sampler
from ..processes import Parent, call_in_process
from ..sessions.calls import short
from ..sessions.contenders import Session, check_read
from ..sessions.histories import SESSION, make_items, make_turn
from .contenders import BASELINES, CONTENDERS, fill, live_session, use_as, used

_TASKS = 64
_TURN = make_turn(1)
_ITEMS_OF_LIVE = 5
_THROUGHPUT = Metric("turns", "/s", more_is_better=True)
_ERRORS = Metric("errors", "", has_ratio=False)


def tasks(turns: int, repeats: int) -> Measure:
    """So many tasks, each on a session of its own."""
    ids = [f"conversation-{number}" for number in range(_TASKS)]
    what = f"{_TASKS} tasks on different sessions; a turn is to add 5 items"
    return Measure("tasks-add", what, (_THROUGHPUT, _ERRORS), repeats, _open(ids, turns), BASELINES)


def writers(turns: int, repeats: int) -> Measure:
    """So many tasks, all on the same session, each with a session object of its own."""
    metrics = (_THROUGHPUT, Metric("p99"), _ERRORS)
    what = f"{_TASKS} writers on one session; a turn is to add 5 items"
    return Measure("writers-one-session", what, metrics, repeats, _open([SESSION] * _TASKS, turns), BASELINES)


def _open(ids: Sequence[str], turns: int) -> OpenMeasure:
    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with AsyncExitStack() as stack:
            samplers: dict[str, Sampler] = {}
            for name in CONTENDERS:
                url = stack.enter_context(RedisServer()).url
                server = await stack.enter_async_context(used(name, url))
                sessions = [await stack.enter_async_context(live_session(server, id_)) for id_ in ids]
                samplers[name] = partial(_run, sessions, turns)
            yield samplers

    return open_all


async def _run(sessions: Sequence[Session], turns: int) -> Sample:
    started = perf_counter()
    reports = await asyncio.gather(*(_take_turns(session, turns) for session in sessions))
    seconds = perf_counter() - started
    errors = sum(errors for _, errors in reports)
    latencies = [latency for latencies, _ in reports for latency in latencies]
    p99 = statistics.quantiles(latencies, n=100)[98]
    return {"turns": (len(latencies) - errors) / seconds, "p99": p99, "errors": errors}


async def _take_turns(session: Session, turns: int) -> tuple[list[float], int]:
    latencies = []
    errors = 0
    for _ in range(turns):
        started = perf_counter()
        try:
            await session.add_items(_TURN)
        except Exception:  # noqa: BLE001 - whatever a contender raises, it is counted
            errors += 1
        latencies.append(perf_counter() - started)
    return latencies, errors


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
