"""The state of the learning process, as the supervisor tells it to the server processes."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ..learner import LearningProcess

_FIELDS = ("is_alive", "embedder_failures", "unusable_texts", "is_embedder_failing", "is_disk_full")


def learner_state(learning: LearningProcess) -> dict[str, Any]:
    """The state of a learning process as JSON."""
    return {name: getattr(learning, name) for name in _FIELDS}


class LearnerState(LearningProcess):
    """The learning process of the supervisor, as it last reported."""

    def start(self, has_work: Callable[[], Awaitable[bool]] | None = None) -> None:  # noqa: ARG002
        """Do nothing: the supervisor runs the learning process."""

    async def stop(self) -> None:
        """Do nothing: the supervisor runs the learning process."""

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Apply a report of the supervisor."""
        for name in _FIELDS:
            setattr(self, name, state[name])
