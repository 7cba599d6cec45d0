"""Many at once on one file: tasks of one process, and processes."""

import asyncio
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any, TypeAlias

from ..harness import Measure, Metric, OpenMeasure, Sample, Sampler
from ..processes import Parent, Worker
from .calls import BASELINES
from .contenders import WRITERS, Database, RawShared, Session, live_session, open_as, opened
from .histories import Workspace, make_turn
from .raw import RawSession, transaction

Turn: TypeAlias = Callable[[Session], Awaitable[None]]
InlineTurn: TypeAlias = Callable[[RawSession], None]

GROUPED = "raw FULL, group commit"
_TASKS = 64
_TURN = make_turn(1)
_HISTORY = 100
_NEWEST = 50
_THROUGHPUT = Metric("turns", "/s", more_is_better=True)
_ERRORS = Metric("errors", "", has_ratio=False)


def tasks(workspace: Workspace, turns: int, repeats: int) -> list[Measure]:
    """So many tasks, each on a session of its own, each taking some turns."""
    return [
        _tasks(
            "tasks-add", "add 5 items", _tasks_on_file(workspace, _add_turn, _append_turn, turns), repeats
        ),
        _tasks(
            "tasks-read-add",
            "read the newest 50 and add 2",
            _tasks_on_file(workspace, _read_and_add, _read_and_append, turns),
            repeats,
        ),
    ]


def _tasks(name: str, turn: str, opening: OpenMeasure, repeats: int) -> Measure:
    what = f"{_TASKS} tasks on different sessions of one file; a turn is to {turn}"
    return Measure(name, what, (_THROUGHPUT, _ERRORS), repeats, opening, BASELINES)


async def _add_turn(session: Session) -> None:
    await session.add_items(_TURN)


async def _read_and_add(session: Session) -> None:
    await session.get_items(_NEWEST)
    await session.add_items(_TURN[:2])


def _append_turn(session: RawSession) -> None:
    session.append(_TURN)


def _read_and_append(session: RawSession) -> None:
    session.read(_NEWEST)
    session.append(_TURN[:2])


def _tasks_on_file(workspace: Workspace, turn: Turn, inline_turn: InlineTurn, turns: int) -> OpenMeasure:
    ids = [f"conversation-{number}" for number in range(_TASKS)]

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with AsyncExitStack() as stack:
            samplers: dict[str, Sampler] = {}
            for name in WRITERS:
                path = workspace.copy_of(dict.fromkeys(ids, _HISTORY))
                database = await stack.enter_async_context(opened(name, path))
                sessions = [await stack.enter_async_context(live_session(database, id_)) for id_ in ids]
                samplers[name] = partial(_run_tasks, sessions, turn, turns)
            grouped = RawShared(workspace.copy_of(dict.fromkeys(ids, _HISTORY)), "FULL")
            stack.callback(grouped.close)
            samplers[GROUPED] = partial(
                _run_grouped, [grouped.session(id_) for id_ in ids], inline_turn, turns
            )
            yield samplers

    return open_all


async def _run_tasks(sessions: Sequence[Session], turn: Turn, turns: int) -> Sample:
    started = perf_counter()
    errors = sum(await asyncio.gather(*(_take_turns(session, turn, turns) for session in sessions)))
    seconds = perf_counter() - started
    return {"turns": (len(sessions) * turns - errors) / seconds, "errors": errors}


async def _take_turns(session: Session, turn: Turn, turns: int) -> int:
    errors = 0
    for _ in range(turns):
        try:
            await turn(session)
        except Exception:  # noqa: BLE001 - whatever a contender raises, it is counted
            errors += 1
    return errors


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

    metrics = (_THROUGHPUT, Metric("p50"), Metric("p99"), _ERRORS)
    what = f"{number} processes add {turns} turns of 5 items each to sessions of one new file"
    return Measure(f"processes-{number}", what, metrics, repeats, open_all, BASELINES, warm_up=False)


async def _run_processes(workspace: Workspace, contender: str, number: int, turns: int) -> Sample:
    path = workspace.new_path()
    reports = _run_together([(contender, path, f"conversation-{n}", turns) for n in range(number)])
    errors = sum(report["errors"] for report in reports)
    seconds = max(report["ended"] for report in reports) - min(report["started"] for report in reports)
    percentiles = statistics.quantiles([time for report in reports for time in report["latencies"]], n=100)
    return {
        "turns": (number * turns - errors) / seconds,
        "p50": percentiles[49],
        "p99": percentiles[98],
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
    latencies = []
    errors = 0
    writer = _LateOpener(contender, path, session_id)
    began = monotonic()  # the same clock in all processes
    for _ in range(turns):
        started = perf_counter()
        try:
            await writer.add_turn()
        except Exception:  # noqa: BLE001 - whatever a contender raises, it is counted
            errors += 1
        latencies.append(perf_counter() - started)
    ended = monotonic()
    await writer.close()
    return {"started": began, "ended": ended, "latencies": latencies, "errors": errors}


class _LateOpener:
    """A session that is made at the first turn, and at the next if that failed."""

    def __init__(self, contender: str, path: Path, session_id: str) -> None:
        self._contender = contender
        self._path = path
        self._session_id = session_id
        self._database: Database | None = None
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
            self._database.close()
