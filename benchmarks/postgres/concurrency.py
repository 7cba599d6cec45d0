"""Many at once on one server: tasks on sessions of their own, writers on one session, live sessions."""

import asyncio
import statistics
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from time import perf_counter
from typing import Any

import asyncpg

from ..harness import Measure, Metric, OpenMeasure, Sample, Sampler
from ..processes import Parent, call_in_process
from ..sessions.calls import short
from ..sessions.contenders import Session
from ..sessions.histories import SESSION, make_turn
from .contenders import BASELINES, ON_POSTGRES, OURS, RAW, SDK, SDK_BY_URL, live_session, use_as
from .databases import Databases

_TASKS = 64
_TURN = make_turn(1)
_ITEMS_OF_LIVE = 5
_THROUGHPUT = Metric("turns", "/s", more_is_better=True)
_ERRORS = Metric("errors", "", has_ratio=False)


def tasks(databases: Databases, turns: int, repeats: int) -> Measure:
    """So many tasks, each on a session of its own."""
    ids = [f"conversation-{number}" for number in range(_TASKS)]
    what = f"{_TASKS} tasks on different sessions; a turn is to add 5 items"
    opening = _open(databases, ids, turns)
    return Measure("tasks-add", what, (_THROUGHPUT, _ERRORS), repeats, opening, BASELINES)


def writers(databases: Databases, turns: int, repeats: int) -> Measure:
    """So many tasks, all on the same session, each with a session object of its own."""
    metrics = (_THROUGHPUT, Metric("p99"), _ERRORS)
    what = f"{_TASKS} writers on one session; a turn is to add 5 items"
    opening = _open(databases, [SESSION] * _TASKS, turns)
    return Measure("writers-one-session", what, metrics, repeats, opening, BASELINES)


def _open(databases: Databases, ids: Sequence[str], turns: int) -> OpenMeasure:
    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(databases.server())
            samplers: dict[str, Sampler] = {}
            for name in ON_POSTGRES:
                database = await stack.enter_async_context(databases.filled(name, server, {}))
                sessions = [await stack.enter_async_context(live_session(database, id_)) for id_ in ids]
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

    metrics = (Metric("connections", "", has_ratio=False), _ERRORS, Metric("time"))
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
