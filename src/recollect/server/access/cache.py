"""What was read a moment ago, so that it need not be read again for each request."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ExpiringCache(Generic[K, V]):
    """Keeps values for a short time, and never more than a number of them: the oldest go first."""

    def __init__(
        self, seconds: float = 1.0, most: int = 1000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = seconds
        self._most = most
        self._clock = clock
        self._kept: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """The value, or `None` if it is not there or too old."""
        found = self._kept.get(key)
        if found is None or self._clock() >= found[0]:
            return None
        return found[1]

    def put(self, key: K, value: V) -> None:
        """Keep a value from now on."""
        self._kept[key] = self._clock() + self._seconds, value
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def forget(self, key: K) -> None:
        """Keep it no longer."""
        self._kept.pop(key, None)

    def __len__(self) -> int:
        return len(self._kept)
