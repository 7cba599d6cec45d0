"""What sessions take beside time: file handles, threads, memory, the event loop's patience, imports."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import psutil

from ..harness import Measure, Metric, Sample, Sampler
from ..processes import Parent, call_in_process
from ..shared.items import SESSION
from ..shared.stores import check_read, live_session, short
from .contenders import BASELINES, OURS, READERS, SDK, opened
from .histories import Workspace

_ITEMS_OF_LIVE = 5
_TICK = 0.001
_OBJECTS_PER_TICK = 100


# --- many live sessions -------------------------------------------------------------------------------


def live_sessions(workspace: Workspace, number: int, repeats: int) -> Measure:
    """How much more a process holds when so many sessions of a file are alive, each used once."""
    histories = {f"conversation-{n}": _ITEMS_OF_LIVE for n in range(number)}

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        yield {
            name: partial(_in_process, _hold_sessions, name, workspace.copy_of(histories), list(histories))
            for name in READERS
        }

    metrics = (
        Metric("handles", "", has_ratio=False),
        Metric("threads", "", has_ratio=False),
        Metric("memory", "MB", has_ratio=False),
        Metric("time"),
    )
    what = f"{number:,} live sessions of one file, each used once: what that adds to a process"
    return Measure(f"live-{short(number)}", what, metrics, repeats, open_all, BASELINES, warm_up=False)


async def _in_process(work: Callable[..., Sample], *arguments: Any) -> Sample:
    sample: Sample = call_in_process(work, *arguments)
    return sample


def _hold_sessions(_: Parent, contender: str, path: Path, ids: list[str]) -> Sample:
    return asyncio.run(_hold_sessions_in_loop(contender, path, ids))


async def _hold_sessions_in_loop(contender: str, path: Path, ids: list[str]) -> Sample:
    before = _holdings()
    started = perf_counter()
    async with opened(contender, path) as database:
        sessions = []
        for session_id in ids:
            session = database.session(session_id)
            sessions.append(session)
            check_read(contender, await session.get_items(), _ITEMS_OF_LIVE)
        seconds = perf_counter() - started
        after = _holdings()
        for session in sessions:
            await database.close_session(session)
    return {"time": seconds, **{name: after[name] - before[name] for name in before}}


def _holdings() -> dict[str, float]:
    gc.collect()
    return {
        "handles": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "memory": psutil.Process().memory_info().rss / 1e6,
    }


# --- stalls of the event loop -------------------------------------------------------------------------


def stall(workspace: Workspace, size: int, after: float, repeats: int) -> Measure:
    """How long a large read keeps everything else on the event loop waiting."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        yield {
            name: partial(
                _in_process, _read_while_ticking, name, workspace.copy_of({SESSION: size}), size, after
            )
            for name in READERS
        }

    metrics = (Metric("longest stall during the read"), Metric("longest stall afterwards"), Metric("read"))
    what = f"read {size:,} items while the event loop ticks, and {after:g} s afterwards with the items held"
    return Measure(f"stall-{short(size)}", what, metrics, repeats, open_all, BASELINES, warm_up=False)


def _read_while_ticking(_: Parent, contender: str, path: Path, size: int, after: float) -> Sample:
    return asyncio.run(_read_while_ticking_in_loop(contender, path, size, after))


async def _read_while_ticking_in_loop(contender: str, path: Path, size: int, after: float) -> Sample:
    async with opened(contender, path) as database, live_session(database, SESSION) as session:
        gc.collect()
        async with _Ticker() as ticker:
            await asyncio.sleep(0.05)
            ticker.take_longest()
            started = perf_counter()
            items = await session.get_items()
            read = perf_counter() - started
            during = ticker.take_longest()
            await asyncio.sleep(after)
            afterwards = ticker.take_longest()
        check_read(contender, items, size)
        return {
            "longest stall during the read": during,
            "longest stall afterwards": afterwards,
            "read": read,
        }


class _Ticker:
    """Wakes up every millisecond and remembers the longest time between two ticks.

    At each tick it makes some objects that stay, as the work of an application does: without any, Python
    would have no reason to collect garbage, and the price of the read would never be presented.
    """

    def __init__(self) -> None:
        self._last = perf_counter()
        self._longest = 0.0
        self._objects: list[list[float]] = []

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._tick())
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def take_longest(self) -> float:
        """The longest since the last call. A tick that is overdue counts: its gap ends here."""
        self._mark()
        longest, self._longest = self._longest, 0.0
        return longest

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            self._objects += [[self._last] for _ in range(_OBJECTS_PER_TICK)]
            self._mark()

    def _mark(self) -> None:
        now = perf_counter()
        self._longest = max(self._longest, now - self._last)
        self._last = now


# --- imports ------------------------------------------------------------------------------------------

_IMPORTS = {
    OURS: "import recollect",
    "recollect, SQLiteSession": "from recollect.sessions.sqlite import SQLiteSession",
    SDK: "from agents import SQLiteSession",
    "Python alone": "pass",
}


def import_time(repeats: int) -> Measure:
    """A new interpreter that imports, from its start to its end."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        yield {name: partial(_time_import, code) for name, code in _IMPORTS.items()}

    what = "start Python and import: `import recollect`, its SQLiteSession, `import agents`, nothing"
    return Measure("import", what, (Metric("time"),), repeats, open_all, ("Python alone", SDK))


async def _time_import(code: str) -> Sample:
    started = perf_counter()
    _run_python(code)
    return {"time": perf_counter() - started}


def _run_python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)
