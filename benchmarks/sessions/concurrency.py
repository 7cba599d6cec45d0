"""Many at once on one file: tasks of one process, and processes."""

import asyncio
import statistics
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any, TypeAlias

from ..harness import Measure, Metric, OpenMeasure, Sample, Sampler
from ..processes import Parent, Worker
from ..shared.items import make_turn
from ..shared.stores import Session, Store, closed_afterwards
from ..shared.tasks import (
    CONVERSATIONS,
    ERRORS,
    TASKS,
    THROUGHPUT,
    Turn,
    add_turn,
    on_sessions,
    take_turns,
    tasks,
)
from .contenders import BASELINES, WRITERS, RawShared, on_files, open_as
from .histories import Workspace
from .raw import RawSession, transaction

InlineTurn: TypeAlias = Callable[[RawSession], None]

GROUPED = "raw FULL, group commit"
_TURN = make_turn(1)
_HISTORY = 100
_NEWEST = 50


def file_tasks(workspace: Workspace, turns: int, repeats: int) -> list[Measure]:
    """So many tasks, each on a session of its own, each taking some turns."""
    adding = _on_file(workspace, add_turn, _append_turn, turns)
    both = _on_file(workspace, _read_and_add, _read_and_append, turns)
    what = f"{TASKS} tasks on different sessions of one file; a turn is to"
    return [
        tasks("tasks-add", f"{what} add 5 items", repeats, adding, BASELINES),
        tasks("tasks-read-add", f"{what} read the newest {_NEWEST} and add 2", repeats, both, BASELINES),
    ]


async def _read_and_add(session: Session) -> None:
    await session.get_items(_NEWEST)
    await session.add_items(_TURN[:2])


def _append_turn(session: RawSession) -> None:
    session.append(_TURN)


def _read_and_append(session: RawSession) -> None:
    session.read(_NEWEST)
    session.append(_TURN[:2])


def _on_file(workspace: Workspace, turn: Turn, inline_turn: InlineTurn, turns: int) -> OpenMeasure:
    opening = on_sessions(on_files(workspace), WRITERS, CONVERSATIONS, turn, turns, history=_HISTORY)

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with opening() as samplers:
            grouped = RawShared(workspace.copy_of(dict.fromkeys(CONVERSATIONS, _HISTORY)), "FULL")
            sessions = [grouped.session(session_id) for session_id in CONVERSATIONS]
            async with closed_afterwards(grouped):
                yield {**samplers, GROUPED: partial(_run_grouped, sessions, inline_turn, turns)}

    return open_all


async def _run_grouped(sessions: Sequence[RawSession], turn: InlineTurn, turns: int) -> Sample:
    """What group commit can reach at best: a turn of every session in each commit, nobody waiting."""
    started = perf_counter()
    for _ in range(turns):
        with transaction(sessions[0].connection):
            for session in sessions:
                turn(session)
    return {"turns": len(sessions) * turns / (perf_counter() - started), "errors": 0}


def processes(workspace: Workspace, number: int, turns: int, repeats: int) -> Measure:
    """Processes that open a new file at the same moment, and each add turns to a session of their own."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        yield {name: partial(_run_processes, workspace, name, number, turns) for name in WRITERS}

    metrics = (THROUGHPUT, Metric("p50"), Metric("p99"), Metric("longest"), ERRORS)
    what = f"{number} processes add {turns} turns of 5 items each to sessions of one new file"
    return Measure(f"processes-{number}", what, metrics, repeats, open_all, BASELINES, warm_up=False)


async def _run_processes(workspace: Workspace, contender: str, number: int, turns: int) -> Sample:
    path = workspace.new_path()
    reports = _run_together([(contender, path, f"conversation-{n}", turns) for n in range(number)])
    errors = sum(report["errors"] for report in reports)
    seconds = max(report["ended"] for report in reports) - min(report["started"] for report in reports)
    latencies = [time for report in reports for time in report["latencies"]]
    percentiles = statistics.quantiles(latencies, n=100)
    return {
        "turns": (number * turns - errors) / seconds,
        "p50": percentiles[49],
        "p99": percentiles[98],
        "longest": max(latencies),
        "errors": errors,
    }


def _run_together(arguments: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Start a worker for each, let them go when all are ready, and gather what they report."""
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(_write_turns, *each)) for each in arguments]
        for worker in workers:
            worker.receive()
        for worker in workers:
            worker.send("go")
        return [worker.receive() for worker in workers]


def _write_turns(parent: Parent, contender: str, path: Path, session_id: str, turns: int) -> dict[str, Any]:
    parent.wait_for_start()
    return asyncio.run(_write_turns_in_loop(contender, path, session_id, turns))


async def _write_turns_in_loop(contender: str, path: Path, session_id: str, turns: int) -> dict[str, Any]:
    """Turn after turn. Opening the file belongs to the first: that is when processes collide."""
    writer = _LateOpener(contender, path, session_id)
    began = monotonic()  # the same clock in all processes
    latencies, errors = await take_turns(writer.add_turn, turns)
    ended = monotonic()
    await writer.close()
    return {"started": began, "ended": ended, "latencies": latencies, "errors": errors}


class _LateOpener:
    """A session that is made at the first turn, and at the next if that failed."""

    def __init__(self, contender: str, path: Path, session_id: str) -> None:
        self._contender = contender
        self._path = path
        self._session_id = session_id
        self._database: Store | None = None
        self._session: Session | None = None

    async def add_turn(self) -> None:
        """Add a turn, to a session that is made if there is none."""
        if self._database is None:
            self._database = open_as(self._contender, self._path)
        if self._session is None:
            self._session = self._database.session(self._session_id)
        await self._session.add_items(_TURN)

    async def close(self) -> None:
        """Close what was opened."""
        if self._database is not None:
            if self._session is not None:
                await self._database.close_session(self._session)
            await self._database.close()
