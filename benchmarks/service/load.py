"""The load generator: many who ask one after another, bounded in time and in number.

Without a rate everybody asks again as soon as they are answered: so much can be served. With a rate each
request is due at a time of its own, whatever became of those before, and its latency counts from then: who
waits for a slow server to take the next request waits too.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from time import perf_counter
from typing import Generic, TypeAlias, TypeVar

from .client import Answer, Connection

T = TypeVar("T")
Asker: TypeAlias = Callable[[T], Awaitable[str | None]]
"""Asks for something, and says what was in the way, or `None` if it was done."""

_OK = range(200, 300)
_LONGEST = 2  # times the seconds of a load, after which what is late is not sent any more
_TO_ANSWER = 60.0  # seconds after which a load is given up, if somebody still waits for an answer then


@dataclass
class Outcome:
    """What became of a load."""

    latencies: list[float] = field(default_factory=list)
    """Seconds, of requests that were done."""
    failures: Counter[str] = field(default_factory=Counter)
    """How many were not done, by what was in the way."""
    seconds: float = 0.0
    unsent: int = 0
    """How many were due and never sent, because those before them took too long."""

    @property
    def rate(self) -> float:
        """Requests done in a second."""
        return len(self.latencies) / self.seconds if self.seconds else 0.0

    def percentile(self, percent: float) -> float:
        """The latency that so many percent of the requests do not exceed."""
        ranked = sorted(self.latencies)
        return ranked[max(math.ceil(len(ranked) * percent / 100), 1) - 1]

    def check(self) -> "Outcome":
        """The same, if something was done and nothing failed: figures of a load that fails say nothing."""
        if self.failures or not self.latencies:
            raise AssertionError(
                f"{len(self.latencies)} requests were done, others not: {dict(self.failures)}"
            )
        return self


class Clock:
    """The time, and waiting for it."""

    def now(self) -> float:
        """Seconds since some moment."""
        return perf_counter()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class Load(Generic[T]):
    """Things to ask for, each once, by as many as there are askers."""

    def __init__(
        self,
        askers: Sequence[Asker[T]],
        things: Iterable[T],
        *,
        seconds: float,
        rate: float | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._askers = askers
        self._things = iter(things)
        self._seconds = seconds
        self._rate = rate
        self._clock = clock or Clock()
        self._outcome = Outcome()

    async def run(self) -> Outcome:
        """Ask until the time is up or nothing is left."""
        started = self._clock.now()
        dues = self._dues(started)
        async with asyncio.timeout(self._seconds * _LONGEST + _TO_ANSWER):
            await asyncio.gather(*(self._ask_on(asker, dues) for asker in self._askers))
        self._outcome.seconds = self._clock.now() - started
        return self._outcome

    def _dues(self, started: float) -> Iterator[float]:
        """When the requests are due, one after another, until the time is up."""
        for number in count():
            due = self._clock.now() if self._rate is None else started + number / self._rate
            if due >= started + self._seconds:
                return
            if self._clock.now() < started + self._seconds * _LONGEST:
                yield due
            else:
                self._outcome.unsent += 1

    async def _ask_on(self, asker: Asker[T], dues: Iterator[float]) -> None:
        for due in dues:
            thing = next(self._things, None)
            if thing is None:
                return
            early = due - self._clock.now()
            if early > 0:
                await self._clock.sleep(early)
            await self._ask(asker, thing, due)

    async def _ask(self, asker: Asker[T], thing: T, due: float) -> None:
        try:
            fault = await asker(thing)
        except ConnectionError as error:
            fault = type(error).__name__
        if fault is None:
            self._outcome.latencies.append(self._clock.now() - due)
        else:
            self._outcome.failures[fault] += 1


async def load_ports(
    ports: Sequence[int],
    requests: Iterable[bytes],
    *,
    connections: int,
    seconds: float,
    rate: float | None = None,
    on_answer: Callable[[Answer], None] | None = None,
) -> Outcome:
    """Send requests to servers on this machine, by so many connections that are shared out among them."""
    opened = [await Connection.open(ports[number % len(ports)]) for number in range(connections)]
    try:
        askers = [_asking(connection, on_answer) for connection in opened]
        return await Load(askers, requests, seconds=seconds, rate=rate).run()
    finally:
        for connection in opened:
            connection.close()


def _asking(connection: Connection, on_answer: Callable[[Answer], None] | None) -> Asker[bytes]:
    async def ask(request: bytes) -> str | None:
        answer = await connection.ask(request)
        if on_answer is not None:
            on_answer(answer)
        return None if answer.status in _OK else str(answer.status)

    return ask
