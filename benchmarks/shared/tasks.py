"""Many tasks at once, which take turns on sessions of one store."""

import asyncio
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from time import perf_counter
from typing import TypeAlias

from ..harness import Measure, Metric, OpenMeasure, Sample, Sampler
from .items import SESSION, make_turn
from .stores import Session, Setting, live_session

Turn: TypeAlias = Callable[[Session], Awaitable[None]]

TASKS = 64
THROUGHPUT = Metric("turns", "/s", more_is_better=True)
ERRORS = Metric("errors", "", has_ratio=False)
CONVERSATIONS = [f"conversation-{number}" for number in range(TASKS)]
_TURN = make_turn(1)


async def add_turn(session: Session) -> None:
    """A turn that adds five items."""
    await session.add_items(_TURN)


def tasks(name: str, what: str, repeats: int, opening: OpenMeasure, baselines: tuple[str, ...]) -> Measure:
    """So many tasks, each on a session of its own."""
    return Measure(name, what, (THROUGHPUT, ERRORS), repeats, opening, baselines)


def writers(
    setting: Setting, contenders: Sequence[str], turns: int, repeats: int, baselines: tuple[str, ...]
) -> Measure:
    """So many tasks, all on the same session, each with a session object of its own."""
    metrics = (THROUGHPUT, Metric("p99"), ERRORS)
    what = f"{TASKS} writers on one session; a turn is to add 5 items"
    opening = on_sessions(setting, contenders, [SESSION] * TASKS, add_turn, turns)
    return Measure("writers-one-session", what, metrics, repeats, opening, baselines)


def on_sessions(
    setting: Setting, contenders: Sequence[str], ids: Sequence[str], turn: Turn, turns: int, history: int = 0
) -> OpenMeasure:
    """Samplers that each let a task take turns on every session of a store of its own."""
    histories = dict.fromkeys(ids, history) if history else {}

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with AsyncExitStack() as stack:
            open_store = await stack.enter_async_context(setting())
            samplers: dict[str, Sampler] = {}
            for name in contenders:
                store = await stack.enter_async_context(open_store(name, histories))
                sessions = [await stack.enter_async_context(live_session(store, id_)) for id_ in ids]
                samplers[name] = partial(_run, sessions, turn, turns)
            yield samplers

    return open_all


async def _run(sessions: Sequence[Session], turn: Turn, turns: int) -> Sample:
    started = perf_counter()
    reports = await asyncio.gather(*(take_turns(partial(turn, session), turns) for session in sessions))
    seconds = perf_counter() - started
    errors = sum(errors for _, errors in reports)
    latencies = [latency for latencies, _ in reports for latency in latencies]
    p99 = statistics.quantiles(latencies, n=100)[98]
    return {"turns": (len(latencies) - errors) / seconds, "p99": p99, "errors": errors}


async def take_turns(turn: Callable[[], Awaitable[object]], turns: int) -> tuple[list[float], int]:
    """How long each turn took, and how many failed."""
    latencies = []
    errors = 0
    for _ in range(turns):
        started = perf_counter()
        try:
            await turn()
        except Exception:  # noqa: BLE001 - whatever a contender raises, it is counted
            errors += 1
        latencies.append(perf_counter() - started)
    return latencies, errors
