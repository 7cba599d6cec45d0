"""Fair use of the event loop by many turns at once.

The SDK reads a stream without a pause while data is available. If two hundred answers arrive at once, each is
read for some twenty milliseconds before the event loop runs anything else.
"""

import asyncio
from collections.abc import Iterator
from time import monotonic

_BURST = 0.005  # seconds
_EVENT_END = b"\n\n"


class Turnstile:
    """Lets callers pass until they have worked for five milliseconds together.

    After that they pass in the order of their arrival, so many `at_once` in a cycle of the event loop. No
    caller is refused.
    """

    def __init__(self, at_once: int = 1) -> None:
        self._passing = asyncio.Semaphore(at_once)
        self._since = 0.0

    async def __call__(self) -> None:
        """Return at once, or after the event loop has run other tasks."""
        if not self._passing.locked() and monotonic() - self._since < _BURST:
            return
        async with self._passing:
            await asyncio.sleep(0)
            self._since = monotonic()


def split_events(chunk: bytes) -> Iterator[bytes]:
    """The chunk, split after each event; joined, the pieces are the chunk again."""
    start = 0
    while start < len(chunk):
        end = chunk.find(_EVENT_END, start)
        stop = len(chunk) if end < 0 else end + len(_EVENT_END)
        yield chunk[start:stop]
        start = stop
