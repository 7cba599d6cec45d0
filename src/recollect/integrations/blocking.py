"""Synchronous calls of asynchronous methods, on one event loop of the process.

Frameworks such as LangGraph have a synchronous and an asynchronous method for each operation. We write the
asynchronous one. The synchronous one runs it on a loop with a thread of its own, so it also works inside a
running event loop, which it blocks as any synchronous call does.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_EXIT_SECONDS = 5.0


class _Loop:
    """An event loop on a thread. It is started by the first call, and again in a forked child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a call on the loop and wait for its result."""
        if threading.current_thread() is self._thread:
            call.close()
            raise RuntimeError("a synchronous call inside its own event loop would wait for itself forever")
        future = asyncio.run_coroutine_threadsafe(call, self._started())
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="recollect-blocking", daemon=True
                )
                self._thread.start()
            return self._loop

    def stop(self) -> None:
        """End the loop: its connections to database servers are closed."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        closing = asyncio.run_coroutine_threadsafe(loop.shutdown_asyncgens(), loop)
        closing.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))
        thread.join(_EXIT_SECONDS)
        if not thread.is_alive():
            loop.close()

    def reset(self) -> None:
        """Forget the loop of the parent process: its thread does not exist in a forked child."""
        self._lock = threading.Lock()
        self._inherited = self._loop  # referenced, so that nothing closes the sockets of the parent
        self._loop = self._thread = None


_LOOP = _Loop()
atexit.register(_LOOP.stop)
os.register_at_fork(after_in_child=_LOOP.reset)


def run_blocking(call: Coroutine[Any, Any, T]) -> T:
    """Run an asynchronous call from synchronous code, and return its result."""
    return _LOOP.run(call)
