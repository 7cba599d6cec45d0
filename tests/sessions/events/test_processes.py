"""Several processes on one log: no gaps, no doubles, whole batches, and what was acknowledged survives."""

import asyncio
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from recollect import SQLiteSession
from recollect.sessions.events import ConversationEvent, EventLog
from recollect.testing.contract import assert_whole_and_ordered, in_event_loop

from .databases import Somewhere
from .events_worker import SIZE

pytestmark = pytest.mark.proof

WORKER = Path(__file__).with_name("events_worker.py")
WORKERS = 4


def start(
    task: str, batches: int, path: Path, where: Somewhere, stdout: IO[str] | int = subprocess.PIPE
) -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKER), task, str(batches), str(path), *where.arguments()]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE, text=True, bufsize=1
    )


def begin(worker: subprocess.Popen[str], name: int) -> None:
    assert worker.stdin is not None
    worker.stdin.write(f"{name}\n")
    worker.stdin.flush()


def run_all(task: str, batches: int, path: Path, where: Somewhere) -> list[list[str]]:
    """Run workers at once; what each printed."""
    workers = [start(task, batches, path, where) for _ in range(WORKERS)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n", worker.communicate()[1]
    for name, worker in enumerate(workers):
        begin(worker, name)
    printed = []
    for worker in workers:
        output, errors = worker.communicate(timeout=100)
        assert (worker.returncode, errors) == (0, "")
        printed.append(output.splitlines())
    return printed


async def events_in(where: Somewhere) -> list[ConversationEvent]:
    """All events, after a check that their numbers have no gaps."""
    async with where.open(EventLog) as log:
        events = await log.read("shared", limit=None)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    return events


def words(events: list[ConversationEvent]) -> list[str]:
    return [event.text or "" for event in events]


def test_processes_append_to_one_conversation(tmp_path: Path, shared: Somewhere) -> None:
    """They also race for the tables."""
    printed = run_all("append", 25, tmp_path / "unused.db", shared)
    events = asyncio.run(events_in(shared))
    assert_whole_and_ordered(words(events), WORKERS, 25, SIZE)
    for name, lines in enumerate(printed):
        for number, first in (map(int, line.split()) for line in lines):
            assert events[first].text == f"{name}/{number}/0", "each was told its own numbers"


@in_event_loop
async def test_processes_project_one_session(tmp_path: Path, shared: Somewhere) -> None:
    path = tmp_path / "session.db"
    await asyncio.to_thread(run_all, "project", 15, path, shared)
    events = await events_in(shared)
    assert_whole_and_ordered(words(events), WORKERS, 15, SIZE)
    async with SQLiteSession("shared", path) as session, shared.open(EventLog) as log:
        assert words(events) == [item["content"] for item in await session.get_items()]
        assert await log.project(session) == []


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


@pytest.mark.parametrize("task", ["append", "project"])
@pytest.mark.parametrize("round_number", range(3))
def test_what_was_acknowledged_survives_kill_9(
    tmp_path: Path, shared: Somewhere, task: str, round_number: int
) -> None:
    chance = random.Random(round_number)
    outputs, workers = [tmp_path / f"said-{n}" for n in range(2)], []
    for name, output in enumerate(outputs):
        with output.open("w") as stdout:
            workers.append(start(task, 100_000, tmp_path / "session.db", shared, stdout))
        begin(workers[name], name)
    assert wait_until(lambda: all(output.read_text().count("\n") > 1 for output in outputs))
    time.sleep(chance.uniform(0.01, 0.3))
    for worker in workers:
        worker.send_signal(signal.SIGKILL)
        assert worker.communicate()[1] == ""
    found = words(asyncio.run(events_in(shared)))
    starts = [text.rsplit("/", 1)[0] for text in found[::SIZE]]
    assert found == [f"{each}/{n}" for each in starts for n in range(SIZE)], "every batch is whole"
    assert len(set(found)) == len(found), "and there once"
    for name, output in enumerate(outputs):
        lines = [line for line in output.read_text().splitlines(keepends=True)[1:] if line.endswith("\n")]
        acknowledged = [f"{name}/{line.split()[0]}" for line in lines]
        stored = [each for each in starts if each.startswith(f"{name}/")]
        assert stored[: len(acknowledged)] == acknowledged, "nothing acknowledged is lost"
