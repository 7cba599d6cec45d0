"""Workers killed in the call and before a stage is stored: all is applied once, no finished call repeats."""

import os
import queue
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.memory.pipeline.stages import STAGES
from recollect.memory.run import Coverage
from recollect.memory.store import MemoryStore
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer

from ..databases import Place
from .travellers import HOME, MOOD, PATH, answer, home, number_of, saying

pytestmark = pytest.mark.proof

SCRIPT = Path(__file__).with_name("worker_processes.py")
TRAVELLERS = 9
KILLS = list(range(TRAVELLERS))  # in the call
MARKS = [f"c{number}-{stage}" for number in range(TRAVELLERS) for stage in STAGES][:16]  # 25 on each database
WORKERS = 4
LEASE = 1.0


class KillPoints:
    """Lets calls wait whose caller is to be killed, and counts all calls."""

    def __init__(self) -> None:
        self.planned = Counter(KILLS)
        self.calls: Counter[int] = Counter()
        self.waiting: queue.Queue[str] = queue.Queue()

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def call(scope: Scope, receive: Receive, send: Send) -> None:
            request = scope["recorded"]
            key = number_of(request)
            self.calls[key] += 1
            if not self.planned[key]:
                await app(scope, receive, send)
                return
            self.planned[key] -= 1
            self.waiting.put(request.body["model"])
            while (await receive())["type"] != "http.disconnect":
                continue

        return call


class Crew:
    """Worker processes, by their names."""

    def __init__(self, launcher: "subprocess.Popen[str]") -> None:
        self._launcher = launcher
        self._processes: dict[str, int] = {}

    def start(self) -> None:
        """Have one worker more."""
        name = f"worker-{len(self._processes)}"
        assert self._launcher.stdin is not None
        assert self._launcher.stdout is not None
        print(name, file=self._launcher.stdin, flush=True)
        self._processes[name] = int(self._launcher.stdout.readline())

    def kill(self, name: str) -> None:
        os.kill(self._processes[name], signal.SIGKILL)


@contextmanager
def crew_on(place: Place, server: ProviderServer, folder: Path) -> Iterator[Crew]:
    given = (place.url, server.base_url, server.api_key, str(LEASE), str(folder))
    command = [sys.executable, str(SCRIPT), *given]
    launcher = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with launcher:
        yield Crew(launcher)


async def record_all(store: MemoryStore) -> None:
    for number in range(TRAVELLERS):
        await store.add_entry("agent", f"user {number}", "profile", HOME)
        messages = [{"role": "user", "content": saying(number)}]
        await store.record_conversation("agent", f"user {number}", messages, conversation_id=f"c{number}")


def kill_as_planned(crew: Crew, points: KillPoints, folder: Path) -> None:
    """Kill workers in their calls, and replace those and the ones that kill themselves."""
    for _ in range(WORKERS):
        crew.start()
    killed, waiting = 0, set(MARKS)
    for _ in range(2000):
        if killed == len(KILLS) and not waiting:
            return
        try:
            crew.kill(points.waiting.get(timeout=0.05))
            killed += 1
            crew.start()
        except queue.Empty:
            gone = {mark for mark in waiting if not (folder / mark).exists()}
            waiting -= gone
            for _ in gone:
                crew.start()
    raise AssertionError(f"killed in calls: {killed}, still to come: {sorted(waiting)}")


async def assert_applied_once(store: MemoryStore, number: int) -> None:
    (run,) = await store.list_runs_of(f"c{number}")
    assert (run.status, run.failures) == ("done", ())
    assert [stage.stage for stage in run.stages] == list(STAGES)
    old, new, mood = await store.list_entries("agent", f"user {number}", include_retired=True)
    assert (old.text, old.superseded_by) == (HOME, new.content_id)
    assert (new.text, mood.text) == (home(number), MOOD)
    for entry in (new, mood):
        assert [(each.conversation_id, each.run_id) for each in entry.evidence] == [
            (f"c{number}", run.run_id)
        ]


@in_event_loop
async def test_workers_that_are_killed_in_each_stage(shared_place: Place, tmp_path: Path) -> None:
    points = KillPoints()
    for mark in MARKS:
        (tmp_path / mark).touch()
    with ProviderServer() as server:
        server.chat.reply_always(answer)
        server.fail_next(PATH, points, times=10_000)
        async with shared_place.open() as store:
            await record_all(store)
            with crew_on(shared_place, server, tmp_path) as crew:
                kill_as_planned(crew, points, tmp_path)
                assert await store.drain(30) == Coverage(remembered=TRAVELLERS)
            for number in range(TRAVELLERS):
                await assert_applied_once(store, number)
    # Only a call whose answer was not stored is repeated.
    unstored = Counter(int(mark[1]) for mark in MARKS if mark.endswith("modification"))
    assert points.calls == Counter({n: 2 + unstored[n] for n in range(TRAVELLERS)})
