"""One background task at a time, shared by the tasks, threads and event loops that wait for it."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress


class _Attempt:
    """One execution of the task. It runs in one event loop and can be awaited from any."""

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self.started = time.monotonic()
        self.loop = asyncio.get_running_loop()
        self._wakers: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._done = False
        self.task = self.loop.create_task(self._run(work))
        self.task.add_done_callback(self._finish)

    @property
    def is_running(self) -> bool:
        """Whether the task will end: not if its event loop has stopped."""
        return not self._done and self.loop.is_running()

    async def wait(self, timeout: float) -> bool:
        """Wait for the end, at most until `timeout` seconds after the start. Returns whether it has ended."""
        ended = asyncio.get_running_loop().create_future()
        with self._lock:
            if not self._done:
                self._wakers.append(_waker(ended))
        if not self._done:
            await asyncio.wait([ended], timeout=max(0.0, self.started + timeout - time.monotonic()))
        return self._done

    def cancel(self) -> None:
        """Cancel the task from any thread."""
        with suppress(RuntimeError):  # the event loop is closed, so the task has ended
            self.loop.call_soon_threadsafe(self.task.cancel)

    @staticmethod
    async def _run(work: Callable[[], Awaitable[None]]) -> None:
        await work()

    def _finish(self, task: "asyncio.Task[None]") -> None:
        with self._lock:
            self._done = True
        if not task.cancelled():
            task.exception()  # marks it as retrieved: the work has logged it
        for wake in self._wakers:
            wake()


def _waker(ended: "asyncio.Future[None]") -> Callable[[], None]:
    """A function that sets the result of a future from any thread."""
    loop = ended.get_loop()

    def set_result() -> None:
        if not ended.done():
            ended.set_result(None)

    def wake() -> None:
        with suppress(RuntimeError):  # the event loop of the waiting task is closed
            loop.call_soon_threadsafe(set_result)

    return wake


class BackgroundTask:
    """Runs some work in the background, at most once at a time."""

    def __init__(self, work: Callable[[], Awaitable[None]], timeout: float) -> None:
        """An attempt that takes more than `timeout` seconds no longer prevents a new one."""
        self._work = work
        self._timeout = timeout
        self._attempt: _Attempt | None = None
        self._lock = threading.Lock()

    def start(self) -> _Attempt:
        """The running attempt, or a new one if none is running."""
        with self._lock:
            attempt = self._attempt
            if attempt is None or not attempt.is_running or self._is_overdue(attempt):
                attempt = self._attempt = _Attempt(self._work)
            return attempt

    def _is_overdue(self, attempt: _Attempt) -> bool:
        return time.monotonic() - attempt.started > self._timeout

    async def finish(self) -> None:
        """Wait for the running attempt, and cancel it if it does not end in time."""
        if self._attempt is not None and self._attempt.is_running:
            await self._attempt.wait(self._timeout)
        await self.cancel()

    async def cancel(self) -> None:
        """Cancel the running attempt and wait up to a second for its end."""
        attempt, self._attempt = self._attempt, None
        if attempt is not None and attempt.is_running:
            attempt.cancel()
            await attempt.wait(time.monotonic() - attempt.started + 1)
