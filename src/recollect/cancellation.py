"""Calls that finish even if the caller is cancelled.

A write that is under way may be stored whatever the caller does. A caller that is cancelled therefore waits
until the outcome is known, and only then raises the cancellation. Nothing changes after the call has ended.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finish_despite_cancellation(call: Coroutine[Any, Any, T], *, grace: float | None = None) -> T:
    """Finish a call even if the caller is cancelled, and return its result.

    Raises `CancelledError` after the call has ended if the caller was cancelled. An error of the call is then
    the cause of the `CancelledError`. With `grace`, a call that needs more than so many seconds after the
    cancellation is cancelled itself.
    """
    task = asyncio.ensure_future(call)
    cancelled = await wait_until_done(task, grace=grace)
    if cancelled is not None:
        raise cancelled from (None if task.cancelled() else task.exception())
    return task.result()


async def finish_ignoring_cancellation(call: Coroutine[Any, Any, T]) -> T:
    """Finish a call even if the caller is cancelled, and return its result: the cancellation has no effect.

    For the last step of a task, whose result counts although the task was to stop.
    """
    task = asyncio.ensure_future(call)
    await wait_until_done(task)
    return task.result()


async def wait_until_done(
    future: "asyncio.Future[Any]", *, grace: float | None = None
) -> asyncio.CancelledError | None:
    """Wait for a future, however often the caller is cancelled, and return the first cancellation.

    Returns `None` if the caller was not cancelled. The caller must raise the cancellation unless it has a
    reason not to. With `grace`, the future is cancelled so many seconds after the caller was.
    """
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future], timeout=None if cancelled is None else grace)
            if cancelled is not None:
                future.cancel()  # no effect if it is done
        except asyncio.CancelledError as error:
            cancelled = cancelled or error
    return cancelled
