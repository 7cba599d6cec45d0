"""One piece of work at a time, beside whoever asks for it: across tasks, threads and event loops."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress


class _Work:
    """Work that is being done in one event loop, and can be waited for in any."""

    def __init__(self, do: Callable[[], Awaitable[None]]) -> None:
        self.started = time.monotonic()
        self.loop = asyncio.get_running_loop()
        self._waiting: list[Callable[[], None]] = []
        self._changing = threading.Lock()
        self._done = False
        self.task = self.loop.create_task(self._do(do))
        self.task.add_done_callback(self._finish)

    @property
    def is_going_on(self) -> bool:
        """Whether it will come to an end: not if its event loop stands still."""
        return not self._done and self.loop.is_running()

    async def wait(self, patience: float) -> bool:
        """Wait for the end, so many seconds at most from when it was started; whether it came."""
        arrived = asyncio.get_running_loop().create_future()
        with self._changing:
            if not self._done:
                self._waiting.append(_waker(arrived))
        if not self._done:
            await asyncio.wait([arrived], timeout=max(0.0, self.started + patience - time.monotonic()))
        return self._done

    def cancel(self) -> None:
        """Ask it to end, from any thread."""
        with suppress(RuntimeError):  # the event loop is closed: it has ended
            self.loop.call_soon_threadsafe(self.task.cancel)

    @staticmethod
    async def _do(do: Callable[[], Awaitable[None]]) -> None:
        await do()

    def _finish(self, task: "asyncio.Task[None]") -> None:
        with self._changing:
            self._done = True
        if not task.cancelled():
            task.exception()  # it was told where it happened
        for wake in self._waiting:
            wake()


def _waker(arrived: "asyncio.Future[None]") -> Callable[[], None]:
    loop = arrived.get_loop()

    def arrive() -> None:
        if not arrived.done():
            arrived.set_result(None)

    def wake() -> None:
        with suppress(RuntimeError):  # the event loop of who waited is closed
            loop.call_soon_threadsafe(arrive)

    return wake


class InFlight:
    """Starts a piece of work unless it is being done already."""

    def __init__(self, do: Callable[[], Awaitable[None]], patience: float) -> None:
        """`patience`: what takes more than these seconds is given up, and done anew."""
        self._do = do
        self._patience = patience
        self._work: _Work | None = None
        self._starting = threading.Lock()

    def start(self) -> _Work:
        """The work that is being done, started now if none was."""
        with self._starting:
            work = self._work
            if work is None or not work.is_going_on or self._is_overdue(work):
                work = self._work = _Work(self._do)
            return work

    def _is_overdue(self, work: _Work) -> bool:
        return time.monotonic() - work.started > self._patience

    async def finish(self) -> None:
        """Wait for the work, then give it up if it is still being done."""
        if self._work is not None and self._work.is_going_on:
            await self._work.wait(self._patience)
        await self.cancel()

    async def cancel(self) -> None:
        """Give up what is being done, and see it end."""
        work, self._work = self._work, None
        if work is not None and work.is_going_on:
            work.cancel()
            await work.wait(time.monotonic() - work.started + 1)
