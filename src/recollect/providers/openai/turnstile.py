"""Many turns at once, a few milliseconds at a time: nobody else waits for the event loop for long."""

import asyncio
from time import monotonic

_AT_ONCE = 0.005  # seconds


class Turnstile:
    """Lets through whoever comes, until they together have been at work for a moment.

    Then, in the order in which they came, one at each turn of the event loop. Nobody is sent away.
    """

    def __init__(self) -> None:
        self._passing = asyncio.Lock()
        self._since = 0.0

    async def __call__(self) -> None:
        """Go on at once, or when others have had their turn."""
        if not self._passing.locked() and monotonic() - self._since < _AT_ONCE:
            return
        async with self._passing:
            await asyncio.sleep(0)
            self._since = monotonic()
