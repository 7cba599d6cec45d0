"""The learning process of the supervisor, as a server process sees it."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from ..learner import LearningProcess
from ..settings import Settings

_FIELDS = ("is_alive", "embedder_failures", "unusable_texts", "is_embedder_failing", "is_disk_full")


def learner_state(learning: LearningProcess) -> dict[str, Any]:
    """The state of a learning process as JSON."""
    return {name: getattr(learning, name) for name in (*_FIELDS, "is_resting")}


class LearnerState(LearningProcess):
    """The learning process as the supervisor last reported it. The supervisor is told when there is work."""

    def __init__(self, settings: Settings, tell_work: Callable[[], None]) -> None:
        super().__init__(settings)
        self._tell_work = tell_work
        self._rested = asyncio.Event()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Apply a report of the supervisor."""
        for name in _FIELDS:
            setattr(self, name, state[name])
        self._is_resting = self._is_resting and not self.is_alive
        if state["is_resting"]:
            self._rested.set()

    async def _keep_running(self) -> None:
        """The supervisor starts the process. If its last report is older than this work, it is told again."""
        self._rested.clear()
        self._tell_work()
        await self._rested.wait()

    def _send_wake(self) -> None:
        self._waking = None
        self._tell_work()
