"""Recalls memories for a call, within a deadline: a call neither waits long for them nor fails with them."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...errors import RecollectError
from ...memory.hits import Recalled
from ...memory.store import MemoryStore
from .speakers import Speaker
from .values import Said

logger = logging.getLogger(__name__)

State: TypeAlias = Literal["added", "none", "slow", "failed", "off"]
"""What became of the memories of a call; the header `X-Recollect-Memory` says it."""

_MOST_LATE = 4  # recalls that go on after their deadline; more calls than that do not try
_LONGEST_QUERY = 4000  # characters


@dataclass(frozen=True)
class Memories:
    """The block of memories for a call; empty unless the state is `added`."""

    state: State
    block: str = ""


class DeadlineRecall:
    """Recalls within so many seconds. A late recall goes on, so that the next one finds its data loaded."""

    def __init__(self, seconds: float, token_budget: int) -> None:
        self._seconds = seconds
        self._token_budget = token_budget
        self._running: set[asyncio.Task[Recalled]] = set()
        self._late: set[asyncio.Task[Recalled]] = set()
        """Those of the running ones for which no call waits any more."""

    async def __call__(self, store: MemoryStore, speaker: Speaker, said: Sequence[Said]) -> Memories:
        """The memories about the newest message of the user."""
        question = next((each.text for each in reversed(said) if each.role == "user"), None)
        if question is None:
            return Memories("none")
        if len(self._late) >= _MOST_LATE:
            return Memories("slow")
        recalled = await self._recall_in_time(store, speaker, _shortened(question))
        if isinstance(recalled, str):
            return Memories(recalled)
        block = self._render(recalled, said)
        return Memories("added", block) if block else Memories("none")

    async def aclose(self) -> None:
        """Stop late recalls."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _recall_in_time(
        self, store: MemoryStore, speaker: Speaker, question: str
    ) -> Recalled | Literal["slow", "failed"]:
        recall = store.recall(question, speaker.agent_id, speaker.user_id, budget=self._token_budget)
        task = asyncio.create_task(recall)
        self._running.add(task)
        task.add_done_callback(self._end)
        try:
            await asyncio.wait([task], timeout=self._seconds)
        finally:  # also if the call was given up
            if not task.done():
                self._late.add(task)
        if not task.done():
            return "slow"
        return "failed" if task.cancelled() or task.exception() is not None else task.result()

    def _end(self, task: "asyncio.Task[Recalled]") -> None:
        self._running.discard(task)
        self._late.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        if not isinstance(error, RecollectError | OSError):
            logger.error("recalling for a proxied call failed unexpectedly", exc_info=error)
        else:
            logger.warning("recalling for a proxied call failed", extra={"error": type(error).__name__})

    def _render(self, recalled: Recalled, said: Sequence[Said]) -> str:
        """The block, without messages that the call has anyway."""
        longest = 2 * max((len(hit.message.content) for hit in recalled.turns), default=0)
        seen = {_normalized(each.text) for each in said if len(each.text) <= longest}
        known = {
            (hit.conversation_id, hit.message.message_id)
            for hit in recalled.turns
            if _normalized(hit.message.content) in seen
        }
        block = recalled.block.without(lambda line: (line.conversation_id, line.id) in known)
        return block.render(budget=self._token_budget).text


def _normalized(text: str) -> str:
    return " ".join(text.split())


def _shortened(question: str) -> str:
    """The start and the end of a long message: that is where its question is."""
    if len(question) <= _LONGEST_QUERY:
        return question
    half = _LONGEST_QUERY // 2
    return f"{question[:half]}\n{question[-half:]}"
