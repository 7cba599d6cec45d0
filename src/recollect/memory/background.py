"""An event loop in a thread of its own: for workers, and for callers without an event loop.

Cancellation: a caller that stops waiting cancels its call. Stopping the loop cancels all calls, waits a few
seconds for them, and then gives up on those that do not end.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_STOP_TIMEOUT = 5.0  # seconds that cancelled calls have to end


class BackgroundLoop:
    """An event loop that runs in a thread, from its first use until it is stopped."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0

    @property
    def is_running(self) -> bool:
        """Whether it runs in this process. A forked child has the loop, but not its thread."""
        return self._loop is not None and self._process == os.getpid()

    def submit(self, call: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a call without waiting for it."""
        return asyncio.run_coroutine_threadsafe(call, self._running())

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a call and return its result. The call is cancelled if the caller stops waiting."""
        future = self.submit(call)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # for example after KeyboardInterrupt: no caller is left
            raise

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call a function in the loop, if the loop runs."""
        with self._starting:
            if self._loop is not None and self.is_running:
                self._loop.call_soon_threadsafe(function)

    def stop(self) -> None:
        """Stop the loop and wait for its thread. A second call does nothing."""
        with self._starting:
            is_running = self.is_running
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if is_running and loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None or not self.is_running:
                self._loop = asyncio.new_event_loop()
                self._process = os.getpid()
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name=self._name, daemon=True
                )
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped. Then cancel its tasks and close it, as `asyncio.run` does."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:  # a call that does not end in time is abandoned
            loop.run_until_complete(asyncio.wait(left, timeout=_STOP_TIMEOUT))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
