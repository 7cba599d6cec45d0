"""Calls that must not stop half-way."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finish_despite_cancellation(call: Coroutine[Any, Any, T]) -> T:
    """Finish a call even if the caller is cancelled. The caller is then cancelled after the call ends."""
    task = asyncio.ensure_future(call)
    cancelled = await _wait_for_end(task)
    result = task.result()
    if cancelled is not None:
        raise cancelled
    return result


async def finish_ignoring_cancellation(call: Coroutine[Any, Any, T]) -> T:
    """Finish a call even if the caller is cancelled, and return its result: the cancellation has no effect.

    For the last step of a task, whose result counts although the task was to stop.
    """
    task = asyncio.ensure_future(call)
    await _wait_for_end(task)
    return task.result()


async def _wait_for_end(task: "asyncio.Future[Any]") -> asyncio.CancelledError | None:
    """Wait for a task, however often the caller is cancelled; returns the last cancellation."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled
