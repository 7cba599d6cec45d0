"""Whether a history is linearizable: the search of Wing and Gong, with what was tried remembered.

Invocations and answers are taken in the order of their times. A world is what may be after some of them: what
the session holds, and which calls have taken effect that are not answered yet. At an answer to a call that
has not taken effect, unanswered calls take effect until it has; which ones, and in which order, is what
is tried. Where no world comes to the end of the history, no order explains it.

Four things keep the worlds few, and change no verdict:
- values are unique, so each that is seen together with another tells which of the two was written first;
- a call that changes nothing takes effect as soon as it fits;
- values that nobody has seen are all one value;
- what failed and was never seen (an `add`) or changes nothing (a `get`) is left out.

Which calls are tried first decides how soon an order is found: where the likeliest lead nowhere for too long,
it is begun anew with others first.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeAlias

from .history import Operation, Values, step

_MOST_WORLDS = 1_000_000  # in all beginnings together
_BEGINNINGS = 5
_UNSEEN = -1

World: TypeAlias = tuple[int, Values, frozenset[int]]
"""How many events have passed, what the session holds, and which unanswered calls have taken effect."""


@dataclass(frozen=True)
class Verdict:
    """What became of a check."""

    linearizable: bool
    decided: bool = True
    """`False` where it was given up: there are too many orders."""
    failed_at: Operation | None = None
    """The first call whose answer no order explains."""
    might_hold: list[Values] = field(default_factory=list)
    """What the session may have held before it."""
    worlds: int = 0
    """How many were tried."""

    def __str__(self) -> str:
        if self.linearizable:
            return "linearizable"
        if not self.decided:
            return "undecided: too many orders to try"
        held = "; ".join(str(list(each)) for each in self.might_hold[:3])
        return f"nothing explains {self.failed_at}, with {held} before"


def check(history: Iterable[Operation], most_worlds: int = _MOST_WORLDS) -> Verdict:
    """Whether the calls of a history can be put in an order that explains all answers and keeps to the times.

    The session was empty at the start.
    """
    operations = _relevant(list(history))
    for beginning in range(_BEGINNINGS):
        verdict = _explore(_Search(operations, beginning), most_worlds // _BEGINNINGS)
        if verdict.decided:
            break
    return verdict


def _explore(search: "_Search", most_worlds: int) -> Verdict:
    start: World = (0, (), frozenset())
    tried, ahead = {start}, [start]
    while ahead:
        world = ahead.pop()
        if search.is_end(world):
            return Verdict(True, worlds=len(tried))
        if len(tried) > most_worlds:
            return Verdict(False, decided=False, worlds=len(tried))
        for after in search.after(world):
            if after not in tried:
                tried.add(after)
                ahead.append(after)
    furthest = max(passed for passed, _, _ in tried)
    might_hold = sorted({held for passed, held, _ in tried if passed == furthest})
    return Verdict(False, failed_at=search.operation_at(furthest), might_hold=might_hold, worlds=len(tried))


def _relevant(history: Sequence[Operation]) -> list[Operation]:
    """The history without what cannot matter, and with one value for all that nobody has seen."""
    seen = {value for each in history for value in each.seen}
    return [
        replace(each, written=tuple(value if value in seen else _UNSEEN for value in each.written))
        for each in history
        if each.is_known
        or (each.kind != "get" and not (each.kind == "add" and seen.isdisjoint(each.written)))
    ]


class _Search:
    """The worlds that can follow one another in a history."""

    def __init__(self, operations: Sequence[Operation], beginning: int = 0) -> None:
        self._operations = operations
        self._earlier = _earlier_writes(operations)
        self._events = _events(operations)
        self._answers = {number: at for at, (number, is_answer) in enumerate(self._events) if is_answer}
        self._open = _open_at(self._events)
        self._readers = frozenset(number for number, each in enumerate(operations) if each.kind == "get")
        self._turn = [self._answers.get(n, len(self._events)) for n in range(len(operations))]
        if beginning:
            random.Random(beginning).shuffle(self._turn)

    def is_end(self, world: World) -> bool:
        """Whether it comes after all events."""
        return world[0] == len(self._events)

    def operation_at(self, passed: int) -> Operation:
        """The one whose event is next."""
        return self._operations[self._events[passed][0]]

    def after(self, world: World) -> Iterator[World]:
        """The worlds that can come next, the likeliest last."""
        passed, held, effective = world
        number, is_answer = self._events[passed]
        if not is_answer:
            yield self._with_readers(passed + 1, held, effective)
        elif number in effective:
            yield passed + 1, held, effective - {number}
        else:
            yield from self._effects(passed, held, effective)

    def _effects(self, passed: int, held: Values, effective: frozenset[int]) -> Iterator[World]:
        """The worlds after one of the unanswered calls; at first, those answered soonest seem likeliest."""
        waiting = self._open[passed] - effective - self._readers
        for number in sorted(waiting, key=self._turn.__getitem__, reverse=True):
            if self._may_follow(number, passed, effective):
                now = step(self._operations[number], held)
                if now is not None:
                    yield self._with_readers(passed, now, effective | {number})

    def _may_follow(self, number: int, passed: int, effective: frozenset[int]) -> bool:
        """Whether all that must come first have taken effect."""
        return all(
            each in effective or self._answers.get(each, passed) < passed for each in self._earlier[number]
        )

    def _with_readers(self, passed: int, held: Values, effective: frozenset[int]) -> World:
        """The world in which everybody has read who would read this."""
        fitting = [
            number
            for number in (self._open[passed] & self._readers) - effective
            if step(self._operations[number], held) is not None
        ]
        return passed, held, effective.union(fitting) if fitting else effective


def _events(operations: Sequence[Operation]) -> list[tuple[int, bool]]:
    """Invocations and answers in their order, as numbers; at the same time, invocations come first."""
    times = [(each.invoked, False, number) for number, each in enumerate(operations)]
    times += [
        (each.returned, True, number) for number, each in enumerate(operations) if each.returned is not None
    ]
    return [(number, is_answer) for _, is_answer, number in sorted(times)]


def _open_at(events: Sequence[tuple[int, bool]]) -> list[frozenset[int]]:
    """Which calls are made and not answered, after so many events."""
    opened: list[frozenset[int]] = [frozenset()]
    for number, is_answer in events:
        opened.append(opened[-1] - {number} if is_answer else opened[-1] | {number})
    return opened


def _earlier_writes(operations: Sequence[Operation]) -> list[set[int]]:
    """For each operation those that must take effect before it: their values were seen before its own."""
    writer = {value: number for number, each in enumerate(operations) for value in each.written}
    earlier: list[set[int]] = [set() for _ in operations]
    for each in operations:
        writers = [writer[value] for value in each.seen if value in writer]
        for before, after in pairwise(writers):
            if before != after:
                earlier[after].add(before)
    return earlier
