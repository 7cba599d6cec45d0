"""What clients do: each choice is made by a seeded stream of its own."""

import random
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any

from .items import KINDS, batch
from .journal import Call
from .model import MAIN

_OWN = {
    "add": 40,
    "add_once": 6,
    "pop": 18,
    "clear": 3,
    "replace": 3,
    "transform": 3,
    "revise": 3,
    "describe": 2,
    "title": 1,
    "get": 16,
    "read_forwards": 3,
    "read_backwards": 2,
}
_BRANCHING = {"branch": 5, "switch": 5, "delete": 3, "clear_branch": 2}
_SHARED = {"add": 34, "add_once": 6, "pop": 36, "transform": 3, "get": 21}
_SHARED_PART = 0.25
_LARGEST_BATCH = 5
_LIMITS = (None, None, 1, 2, 5, 10, 20)


class Workload:
    """The calls of one task of a client, one after the other."""

    def __init__(
        self,
        seed: str,
        writer: str,
        first_call: int,
        own: Sequence[str],
        shared: Sequence[str],
        advanced: bool,
    ) -> None:
        self.chance = random.Random(seed)
        self._writer = writer
        self._number = first_call
        self._own = list(own)
        self._shared = shared
        self._kinds = _OWN | _BRANCHING if advanced else _OWN
        self._turns: defaultdict[str, deque[str]] = defaultdict(lambda: deque(maxlen=6))
        self._branches: defaultdict[str, deque[str]] = defaultdict(lambda: deque([MAIN], maxlen=4))

    def rest(self, session: str) -> None:
        """Leave a session alone: nobody knows whether the last call on it is still under way."""
        if session in self._own:
            self._own.remove(session)

    def rests(self, session: str) -> bool:
        """Whether a session is to be left alone."""
        return session not in self._own and session not in self._shared

    def last(self, step: int, session: str) -> Call:
        """A call that a session must do when nothing is harmed any more."""
        self._number += step
        return Call(self._number, self._writer, session, "add_once", (1,))

    def next(self, step: int) -> Call:
        """The next call; numbers rise by `step`, so that all tasks of a client have their own."""
        self._number += step
        is_shared = not self._own or self.chance.random() < _SHARED_PART
        session = self.chance.choice(self._shared if is_shared else self._own)
        kinds = _SHARED if is_shared else self._kinds
        (kind,) = self.chance.choices(list(kinds), list(kinds.values()))
        arguments = self._arguments(kind, session, is_shared)
        if kind in ("add", "replace"):
            self._turns[session].extend(batch(self._writer, self._number, arguments[0])[::KINDS])
        if kind == "branch":
            self._branches[session].append(f"b{self._number}")
        return Call(self._number, self._writer, session, kind, arguments)

    def _arguments(self, kind: str, session: str, is_shared: bool) -> tuple[Any, ...]:
        size = self.chance.randint(1, _LARGEST_BATCH)
        match kind:
            case "add" | "add_once" | "replace":
                return (size,)
            case "transform":
                return (0 if is_shared else self.chance.randrange(6), size)
            case "get":
                return (self.chance.choice(_LIMITS),)
            case "read_forwards" | "read_backwards":
                return (self.chance.randint(3, 20),)
            case "branch":
                return (self.chance.choice(self._turns[session] or ["none/0"]),)
            case "switch":
                return (self.chance.choice(self._branches[session]),)
            case "delete":
                return self.chance.choice(self._branches[session]), self.chance.random() < 0.5
            case _:
                return ()
