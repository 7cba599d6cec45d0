"""The turns that are running: each a task of its own, which nobody's hanging up ends."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from .failures import ChatFailedError, TurnRunningError


class RunningTurns:
    """Starts turns, and at the end waits for them."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._is_closing = False

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, turn_id: str) -> bool:
        return turn_id in self._tasks

    def start(self, turn_id: str, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run a turn as a task; one that is running already, or comes too late, is refused."""
        if turn_id in self._tasks or self._is_closing:
            work.close()
            raise ChatFailedError("interrupted") if self._is_closing else TurnRunningError()
        task = asyncio.create_task(work, name=f"chat turn {turn_id}")
        self._tasks[turn_id] = task
        task.add_done_callback(lambda _: self._tasks.pop(turn_id, None))
        return task

    async def aclose(self, grace: float) -> None:
        """Wait for running turns, at most `grace` seconds; then interrupt those that are left."""
        self._is_closing = True
        tasks = list(self._tasks.values())
        if tasks and grace > 0:
            await asyncio.wait(tasks, timeout=grace)
        left = [task for task in tasks if not task.done()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
