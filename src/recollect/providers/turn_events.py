"""The events of a turn, on their way from its run to its reader."""

import asyncio
from collections.abc import AsyncIterator

from .values import ChatEvent

_LAST = ("turn.completed", "turn.failed")


class TurnEvents:
    """The events of one turn in order. The last one is `turn.completed` or `turn.failed`."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[ChatEvent] = asyncio.Queue()
        self._is_at_end = False

    def add(self, event: ChatEvent) -> None:
        """Add an event for the reader. This never waits."""
        self._waiting.put_nowait(event)

    async def read(self) -> list[ChatEvent]:
        """All events that nobody has read, once there is one; none after the last event.

        A read that is cancelled takes no events.
        """
        if self._is_at_end:
            return []
        events = [await self._waiting.get()]
        while not self._waiting.empty():
            events.append(self._waiting.get_nowait())
        self._is_at_end = events[-1].kind in _LAST
        return events

    async def __aiter__(self) -> AsyncIterator[ChatEvent]:
        while events := await self.read():
            for event in events:
                yield event
