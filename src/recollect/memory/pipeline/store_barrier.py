"""Lets runs that are executed together store what they have found at the same time.

A thread that writes and a thread that computes slow each other down: each statement of a transaction would
wait for the computing thread, and other processes for the transaction. So the runs compute first. Then the
writer gets all of their transactions at once, and commits them with one flush of the disk.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

MayStore: TypeAlias = Callable[[], Awaitable[object]]
"""Returns when a run may store what it has found."""


class StoreBarrier:
    """Opens as soon as each of the runs wants to store something, or has ended."""

    def __init__(self, runs: int) -> None:
        self._computing = runs
        self._is_open = asyncio.Event()

    @contextmanager
    def entered(self) -> Iterator[MayStore]:
        """For one run, until it has ended: what it awaits before it stores anything."""
        has_arrived = False

        def arrive() -> None:
            nonlocal has_arrived
            self._computing -= not has_arrived
            has_arrived = True
            if self._computing <= 0:
                self._is_open.set()

        def may_store() -> Awaitable[object]:
            arrive()
            return self._is_open.wait()

        try:
            yield may_store
        finally:
            arrive()
