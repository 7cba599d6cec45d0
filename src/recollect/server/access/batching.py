"""Many who wait for a write share one: what came meanwhile is written together."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

_MOST_AT_ONCE = 500


class _Waiting(NamedTuple, Generic[T]):
    value: T
    is_written: "asyncio.Future[None]"


class Batcher(Generic[T]):
    """Hands values to `write`, as many as are waiting; whoever added one waits until it is written.

    One write runs at a time. One that fails fails for all whose values were in it. Belongs to one event loop.
    """

    def __init__(self, write: Callable[[Sequence[T]], Awaitable[None]]) -> None:
        self._write = write
        self._waiting: list[_Waiting[T]] = []
        self._writing: asyncio.Task[None] | None = None

    async def add(self, value: T) -> None:
        """Returns when the value is written. Who stops waiting does not take it back."""
        is_written = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(value, is_written))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())
        await is_written

    async def settled(self) -> None:
        """Returns when nothing is waiting any more."""
        while self._writing is not None and not self._writing.done():
            await asyncio.wait([self._writing])

    async def _write_all(self) -> None:
        while self._waiting:
            some = self._waiting[:_MOST_AT_ONCE]
            del self._waiting[:_MOST_AT_ONCE]
            await self._write_some(some)

    async def _write_some(self, some: Sequence[_Waiting[T]]) -> None:
        writing = asyncio.ensure_future(self._write([waiting.value for waiting in some]))
        writing.add_done_callback(partial(_tell, [waiting.is_written for waiting in some]))
        await asyncio.wait([writing])


def _tell(waiting: Sequence["asyncio.Future[None]"], writing: "asyncio.Future[None]") -> None:
    """Whatever became of a write, those who wait for it hear of it; those who went away do not."""
    failure = None if writing.cancelled() else writing.exception()
    for is_written in waiting:
        if is_written.done():
            continue
        if writing.cancelled():
            is_written.cancel()
        elif failure is not None:
            is_written.set_exception(failure)
        else:
            is_written.set_result(None)
