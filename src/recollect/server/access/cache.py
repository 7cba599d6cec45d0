"""A small cache of values that were read a moment ago."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ExpiringCache(Generic[K, V]):
    """Holds values for a short time. If it has too many, the oldest are dropped."""

    def __init__(
        self, seconds: float = 1.0, max_size: int = 1000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = seconds
        self._max_size = max_size
        self._clock = clock
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """The value; `None` if there is none or it has expired."""
        entry = self._entries.get(key)
        if entry is None or self._clock() >= entry[0]:
            return None
        return entry[1]

    def put(self, key: K, value: V) -> None:
        """Store a value until it expires."""
        self._entries[key] = self._clock() + self._seconds, value
        self._entries.move_to_end(key)
        if len(self._entries) > self._max_size:
            self._entries.popitem(last=False)

    def remove(self, key: K) -> None:
        """Remove a value, if there is one."""
        self._entries.pop(key, None)

    def __len__(self) -> int:
        return len(self._entries)
