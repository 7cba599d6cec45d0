"""So many at a time: the others wait for their turn."""

import asyncio
from weakref import WeakKeyDictionary


class AtMost:
    """Lets so many in at a time, in each event loop: `async with at_most.turn():`."""

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ValueError(f"max_concurrent must be at least 1, and it is {most}")
        self._most = most
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def turn(self) -> asyncio.Semaphore:
        """What is held for a turn: a semaphore works only in the loop that first waited for it."""
        return self._by_loop.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._most))
