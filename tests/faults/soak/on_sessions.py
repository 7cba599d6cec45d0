"""The soak of sessions on a SQLite file, with constant readers and one who reads for long."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from recollect import SQLiteSession
from recollect.sql.sqlite.wal import LARGEST

from ..account import Account
from .databases import free_part_of, log_of, size_of
from .looks import Look, held_by, what_did_not_hold
from .readers import Snapshot, constant_readers

_ROOT = Path(__file__).resolve().parents[3]
_STRETCHES = 40
_LARGEST_LOG = 2 * LARGEST  # while nobody reads for long; a log is cut off after it has grown too large


class Worker:
    """The process that works."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.process = psutil.Process(process.pid)

    def work(self, calls: int) -> list[float]:
        """Have it make so many calls; returns how long each took, the shortest first."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{calls}\n")
        self._process.stdin.flush()
        took: list[float] = json.loads(self._process.stdout.readline())
        return took


@contextmanager
def worker(path: str, seed: int) -> Iterator[Worker]:
    """A process that works on the sessions of a file, as long as it is needed."""
    command = [sys.executable, "-m", f"{__package__}.sessions", path, str(seed)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=_ROOT) as process:
        try:
            yield Worker(process)
        finally:
            process.kill()  # it may be in the middle of a stretch


def soak(account: Account, folder: Path, operations: int, stretches: int = _STRETCHES) -> None:
    """Work on a file, and enter what was measured and found."""
    path = str(folder / "sessions.db")
    asyncio.run(_make(path))
    calls = max(operations // stretches, 1)
    with worker(path, account.seeds[0]) as working, constant_readers(path):
        looks = [_look(working, path, calls, number) for number in range(1, stretches + 1)]
        grown, left = _hold_a_snapshot(working, path, calls)
    account.operations["calls of sessions"] = (stretches + 3) * calls
    account.findings += what_did_not_hold(looks, _LARGEST_LOG)
    if left > _LARGEST_LOG:
        account.findings.append(f"the log still had {left:,} bytes after a long reader was done")
    account.measures |= measures_of(looks) | {
        "log under a long reader, bytes": grown,
        "log afterwards, bytes": left,
        "free part of the file": free_part_of(path),
    }


async def _make(path: str) -> None:
    """Make the file, so that those who read find one."""
    async with SQLiteSession("first", path) as session:
        await session.add_items([{"role": "user", "content": "the first"}])


def _look(working: Worker, path: str, calls: int, number: int) -> Look:
    took = working.work(calls)
    held = held_by([working.process])
    middle = took[len(took) // 2]
    return Look(number * calls, middle, held.memory, held.handles, held.threads, log_of(path), size_of(path))


def _hold_a_snapshot(working: Worker, path: str, calls: int) -> tuple[int, int]:
    """The size of the log while somebody holds a long snapshot, and after two stretches without."""
    snapshot = Snapshot(path)
    working.work(calls)
    grown = log_of(path)
    snapshot.release()
    working.work(calls)
    working.work(calls)
    return grown, log_of(path)


def measures_of(looks: list[Look]) -> dict[str, float]:
    """The figures of a soak."""
    warm, middle, last = looks[len(looks) // 4], looks[len(looks) // 2], looks[-1]
    return {
        "memory when warm, bytes": warm.memory,
        "memory at the half, bytes": middle.memory,
        "memory at the end, bytes": last.memory,
        "handles at the half": middle.handles,
        "handles at the end": last.handles,
        "threads at the half": middle.threads,
        "threads at the end": last.threads,
        "largest log, bytes": max(look.log for look in looks),
        "database at the half, bytes": middle.stored,
        "database at the end, bytes": last.stored,
        "p50 at the half, s": middle.latency,
        "p50 at the end, s": last.latency,
    }
