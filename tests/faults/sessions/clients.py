"""The client processes of a round: started, killed, watched and ended."""

import multiprocessing
import os
import random
import re
import signal
import time
from collections import Counter
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import BinaryIO, Self

from ..clock import shared_clock
from .arenas import Arena
from .client import Orders, run_client, stacks_beside
from .journal import Outcome, Said, read_journal
from .places import Place

CLIENTS = 2
CANCELLED = 0.004  # of the calls
_PATIENCE = 130.0  # seconds without any call being done, or for a client to end
_GLANCE = 0.005
_LOOKING = 1.0  # seconds to write down what all threads are doing
_WRONG_BY = 11 * 3600  # seconds, at most: the ids of batches are remembered for a day by the clock
_FAILED = re.compile(rb'"(?:failed|unknown)","(\w+)"')
_ENDED = (0, -signal.SIGTERM)  # of its own accord, or told to before it was ready to be told
_LIVES = 1000  # of a client in one round, at most: their calls have other numbers in each round
_LOADED = (  # what sessions load when they are first used
    "recollect.sessions.advanced.sqlalchemy",
    "recollect.sessions.advanced.sqlite",
    "recollect.sessions.encryption",
    "recollect.sessions.redis",
    "sqlalchemy.dialects.postgresql.asyncpg",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.aiosqlite",
    "aiosqlite",
    "asyncpg",
    "cryptography.fernet",
    "psycopg",
    "redis.asyncio",
)


@dataclass(frozen=True)
class RoundPlan:
    """What a round is to do; `seed` decides all that is random."""

    number: int
    seed: str
    operations: int
    faults: int
    tasks: int
    """Of each client, at once."""
    sessions: int
    """That each task has for itself; as many again are shared by all."""


def forking() -> ForkServerContext:
    """Processes made by forking one that has loaded everything: a client that was killed is soon replaced.

    They go by the shared clock.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([f"{__package__}.client", *_LOADED])
    with shared_clock().started_meanwhile():
        forkserver.ensure_running()
    return context


class Clients:
    """The client processes of a round, which do not outlive it, and what they have said so far."""

    def __init__(self, place: Place, arena: Arena, plan: RoundPlan, folder: Path) -> None:
        self._place = place
        self._url = place.url(arena.where)
        self._plan = plan
        self._folder = folder
        self._context = forking()
        self._first_life = plan.number * _LIVES
        self._lives = dict.fromkeys(range(CLIENTS), self._first_life)
        self._processes: dict[int, ForkServerProcess] = {}
        self._resting: set[str] = set()
        self._open: dict[Path, BinaryIO] = {}
        self._ended = 0
        self._failures: Counter[str] = Counter()
        self.shared = tuple(f"shared-{plan.number}-{n}" for n in range(plan.sessions))
        self.findings: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for process in self._processes.values():
            _kill(process)
            process.close()
        for file in self._open.values():
            file.close()
        shared_clock().set_right()

    def start(self) -> None:
        """Start all of them."""
        for client in self._lives:
            self._start(client)

    def _start(self, client: int) -> None:
        orders = Orders(
            self._place.name, self._url, self._plan.seed, self._journal(client), client, self._lives[client],
            self._plan.tasks, self._plan.sessions, self.shared, frozenset(self._resting), CANCELLED,
        )  # fmt: skip
        process = self._context.Process(target=run_client, args=(orders,), daemon=True)
        process.start()
        self._processes[client] = process

    def _journal(self, client: int) -> Path:
        return self._folder / f"{client}-{self._lives[client]}"

    def kill(self, client: int) -> bool:
        """Kill one that is at work and start another in its place; `False` where it had ended by itself."""
        self._wait_for_work(client)
        process = self._processes.pop(client)
        _kill(process)
        is_killed = process.exitcode == -signal.SIGKILL
        if not is_killed:
            self.findings.append(f"client {client} ended by itself, with {process.exitcode}")
        process.close()
        if self._place.is_served:  # what it had sent may still happen
            said = read_journal(self._journal(client))
            unknown = [ended.call for ended in said.calls if ended.outcome is Outcome.UNKNOWN]
            self._resting.update(call.session for call in unknown if not call.only_reads)
        self._lives[client] += 1
        self._start(client)
        return is_killed

    def jump_clock(self, chance: random.Random) -> bool:
        """Set their clock, and that of their server, to another time; whether one of them goes by it."""
        clock = shared_clock()
        clock.jump(chance.randint(-_WRONG_BY, _WRONG_BY) - clock.wrong_by)
        living = [process.pid for process in self._processes.values() if process.is_alive()]
        return any(clock.is_that_of(number) for number in living if number is not None)

    def _wait_for_work(self, client: int) -> None:
        """Wait for a client to have begun a call: there is nothing to harm before."""
        journal, deadline = self._journal(client), time.monotonic() + _PATIENCE
        while not (journal.exists() and journal.stat().st_size) and self._processes[client].is_alive():
            if time.monotonic() > deadline:
                raise TimeoutError(f"client {client} does not begin: {self.stacks()}")
            time.sleep(_GLANCE)

    def progress(self) -> int:
        """How many calls have ended so far."""
        for client in self._lives:
            self._look(self._journal(client))
        return self._ended

    def failures(self, *errors: str) -> int:
        """How many of them have ended with an error of one of these names."""
        self.progress()
        return sum(self._failures[error] for error in errors)

    def _look(self, journal: Path) -> None:
        if journal not in self._open:
            if not journal.exists():
                return
            self._open[journal] = journal.open("rb")
        new = self._open[journal].read()
        self._ended += new.count(b'"done"') + new.count(b'"refused"')
        self._failures.update(map(bytes.decode, _FAILED.findall(new)))

    def wait_until(self, operations: int) -> bool:
        """Wait for so many calls to have ended; `False` where nothing goes on."""
        last, since = self.progress(), time.monotonic()
        while last < operations:
            time.sleep(_GLANCE)
            now = self.progress()
            if now > last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > _PATIENCE:
                return False
        return True

    def stacks(self) -> str:
        """What the threads of all of them are doing."""
        for process in self._processes.values():
            if process.is_alive():
                os.kill(process.pid or 0, signal.SIGUSR1)
        time.sleep(_LOOKING)
        files = [stacks_beside(self._journal(client)) for client in self._lives]
        return "; ".join(file.read_text() for file in files if file.exists())

    def end(self) -> None:
        """Let all of them end by themselves."""
        for process in self._processes.values():
            if process.is_alive():
                process.terminate()
        for client, process in self._processes.items():
            process.join(_PATIENCE)
            if process.exitcode is None:
                self.findings.append(f"client {client} did not end: {self.stacks()}")
            elif process.exitcode not in _ENDED:
                self.findings.append(f"client {client} ended with {process.exitcode}")

    def said(self) -> list[Said]:
        """The journals of all, of each client in the order of its lives."""
        lives = [
            (client, life)
            for client, last in self._lives.items()
            for life in range(self._first_life, last + 1)
        ]
        return [read_journal(self._folder / f"{client}-{life}") for client, life in lives]

    def own_sessions(self) -> list[str]:
        """The names of the sessions that one task alone works on."""
        return [
            f"own-{client}-{task}-{number}"
            for client in self._lives
            for task in range(self._plan.tasks)
            for number in range(self._plan.sessions)
        ]


def _kill(process: ForkServerProcess) -> None:
    """Kill it, if it lives: the number of one that does not may be that of another by now."""
    if process.is_alive():
        process.kill()
    process.join()
