"""Callers that do to a session what comes into their heads, and write down what they saw."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from .history import Kind, Operation, Values

_WEIGHTS: dict[Kind, int] = {"add": 40, "pop": 24, "get": 26, "clear": 2, "replace": 3, "keep": 5}
_LARGEST_BATCH = 3
_CANCELLED = 0.01  # of the calls, within the time that most of them take
_LONGEST_PATIENCE = 0.004  # seconds
_VALUES_OF_A_CALLER = 1_000_000


@dataclass(frozen=True)
class Intent:
    """A call that is about to be made."""

    kind: Kind
    written: Values = ()
    limit: int | None = None
    patience: float | None = None
    """Seconds after which it is cancelled."""


class Caller:
    """One who makes a call after another."""

    def __init__(self, seed: object, number: int) -> None:
        self._chance = random.Random(f"{seed}/{number}")
        self._values = count(number * _VALUES_OF_A_CALLER)
        self._name = str(number)

    def intents(self) -> Iterator[Intent]:
        """What comes into their head, without end."""
        kinds, weights = list(_WEIGHTS), list(_WEIGHTS.values())
        while True:
            yield self._intent(self._chance.choices(kinds, weights)[0])

    def _intent(self, kind: Kind) -> Intent:
        chance = self._chance
        patience = chance.uniform(0, _LONGEST_PATIENCE) if chance.random() < _CANCELLED else None
        written: Values = ()
        limit: int | None = None
        if kind in ("add", "replace"):
            written = tuple(next(self._values) for _ in range(chance.randint(1, _LARGEST_BATCH)))
        elif kind == "keep":
            limit = chance.randint(0, 8)
        elif kind == "get" and chance.random() < 0.6:
            limit = chance.choice([0, 1, 1, 2, 3, 5, 8])
        return Intent(kind, written, limit, patience)

    async def call(self, session: Any, intent: Intent) -> Operation:
        """Make a call and tell what was seen, or that it was cancelled."""
        invoked = time.monotonic_ns()
        try:
            async with asyncio.timeout(intent.patience) as patience:
                seen = await _CALLS[intent.kind](session, intent)
            returned = time.monotonic_ns()
        except TimeoutError:
            if not patience.expired():
                raise  # nobody lost patience: the session itself gave up
            returned, seen = None, ()
        return Operation(intent.kind, invoked, returned, intent.written, intent.limit, seen, self._name)


async def work(session: Any, seed: object, number: int, calls: int) -> list[Operation]:
    """What a caller did and saw in so many calls."""
    caller = Caller(seed, number)
    return [
        await caller.call(session, intent) for _, intent in zip(range(calls), caller.intents(), strict=False)
    ]


async def read(session: Any) -> Operation:
    """A look at the whole session."""
    return await Caller(None, 0).call(session, Intent("get"))


# --- the calls ---


def _item(value: int) -> dict[str, Any]:
    return {"role": "user", "content": str(value)}


def _values(items: list[Any]) -> Values:
    return tuple(int(item["content"]) for item in items)


async def _add(session: Any, intent: Intent) -> Values:
    await session.add_items([_item(value) for value in intent.written])
    return ()


async def _pop(session: Any, _intent: Intent) -> Values:
    item = await session.pop_item()
    return () if item is None else _values([item])


async def _get(session: Any, intent: Intent) -> Values:
    return _values(await session.get_items(intent.limit))


async def _clear(session: Any, _intent: Intent) -> Values:
    await session.clear_session()
    return ()


async def _replace(session: Any, intent: Intent) -> Values:
    await session.replace_items([_item(value) for value in intent.written])
    return ()


async def _keep(session: Any, intent: Intent) -> Values:
    seen: list[Values] = []
    limit = intent.limit or 0

    def change(history: list[Any]) -> list[Any]:
        seen.append(_values(history))  # it may be asked again: what it was given last counts
        return history[max(len(history) - limit, 0) :]

    await session.transform_items(change)
    return seen[-1]


_CALLS: dict[Kind, Callable[[Any, Intent], Awaitable[Values]]] = {
    "add": _add,
    "pop": _pop,
    "get": _get,
    "clear": _clear,
    "replace": _replace,
    "keep": _keep,
}
