"""Processes of callers, and the histories of what they did together."""

import asyncio
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from .history import Operation, from_wire
from .places import open_at
from .workload import read

_ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Crowd:
    """How many call at once, and how often."""

    processes: int = 2
    threads: int = 2
    tasks: int = 2
    """Of each thread, for each session; they share the session object."""
    sessions: int = 8
    """That are called at the same time."""
    calls: int = 10
    """Of each caller, for each session."""

    @property
    def round(self) -> int:
        """The calls of a round: those of all callers, and a look at each session afterwards."""
        callers = self.processes * self.threads * self.tasks
        return self.sessions * (callers * self.calls + 1)


@dataclass(frozen=True)
class Target:
    """Where the sessions are that are called; their names are nobody else's."""

    place: str
    url: str
    seed: int
    prefix: str = field(default_factory=lambda: uuid.uuid4().hex)

    def names(self, number: int, sessions: int) -> list[str]:
        """Those of a round."""
        return [f"{self.prefix}-{number}-{place}" for place in range(sessions)]


class Callers:
    """Processes that call the same sessions, in rounds."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self._runner = asyncio.Runner()
        self._processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        counts = (str(self.crowd.threads), str(self.crowd.tasks))
        command = [sys.executable, "-m", f"{__package__}.client", *counts]
        pipe = subprocess.PIPE
        for _ in range(self.crowd.processes):
            self._processes.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=_ROOT))
        return self

    def __exit__(self, *exc_info: object) -> None:
        with ExitStack() as stack:
            stack.callback(self._runner.close)
            for process in self._processes:
                stack.enter_context(process)  # waits for it
                process.kill()  # it has told all it did; or it hangs

    def histories(self, target: Target, rounds: int) -> Iterator[list[list[Operation]]]:
        """The histories of each round; while they are looked at, the callers are at the next."""
        self._runner.run(_look(target, ["first"]))  # makes the tables
        for number in range(rounds + 1):
            done = self._finish(target, number - 1) if number else None
            if number < rounds:
                self._begin(target, number)
            if done is not None:
                yield done

    def _begin(self, target: Target, number: int) -> None:
        callers = self.crowd.threads * self.crowd.tasks
        for place, process in enumerate(self._processes):
            order = {
                "place": target.place,
                "url": target.url,
                "seed": target.seed,
                "round": number,
                "names": target.names(number, self.crowd.sessions),
                "calls": self.crowd.calls,
                "first": 1 + place * callers,
            }
            assert process.stdin is not None
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()

    def _finish(self, target: Target, number: int) -> list[list[Operation]]:
        """Wait for the end of a round, and tell the history of each of its sessions."""
        told = [_answer_of(process) for process in self._processes]
        looks = self._runner.run(_look(target, target.names(number, self.crowd.sessions)))
        return [
            [*(each for part in parts for each in from_wire(part)), look]
            for look, *parts in zip(looks, *told, strict=True)
        ]


def _answer_of(process: "subprocess.Popen[str]") -> list[Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"a process of callers ended with {process.wait()}: it says why above")
    answer: list[Any] = json.loads(line)
    return answer


async def _look(target: Target, names: Sequence[str]) -> list[Operation]:
    """What each session holds."""
    looks = []
    for name in names:
        session = open_at(target.place, target.url, name)
        try:
            looks.append(await read(session))
        finally:
            await session.aclose()
    return looks
