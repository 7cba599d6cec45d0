"""The memories for a call, within a deadline: a call neither waits long for them nor fails with them."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

from ...errors import RecollectError
from ...memory.prompting import (
    PromptMemory,
    PromptOptions,
    PromptOwner,
    PromptParts,
    conversation_key,
    recall,
    turn_key,
)
from ...memory.store import MemoryStore
from .speakers import Speaker
from .values import Said, Thread

logger = logging.getLogger(__name__)

State: TypeAlias = Literal["added", "none", "slow", "failed", "off"]
"""What became of the memories of a call; the header `X-Recollect-Memory` says it."""

T = TypeVar("T")
_Missing: TypeAlias = Literal["slow", "failed"]

_MOST_LATE = 4  # recalls that go on after their deadline; more calls than that do not try
_LONGEST_QUERY = 4000  # characters


@dataclass(frozen=True)
class Memories:
    """What the prompt of a call gets: it may have a page even if the recall was slow or has failed."""

    state: State
    parts: PromptParts = field(default_factory=PromptParts)


class DeadlineRecall:
    """Recalls within so many seconds. A late recall goes on, so that the next one finds its data loaded."""

    def __init__(self, seconds: float, options: PromptOptions) -> None:
        self._seconds = seconds
        self._options = options
        self._prompts = PromptMemory()
        self._running: set[asyncio.Task[Any]] = set()
        self._late_pages: set[asyncio.Task[Any]] = set()
        self._late_recalls: set[asyncio.Task[Any]] = set()
        """Those of the running ones for which no call waits any more."""

    async def __call__(
        self,
        store: MemoryStore,
        speaker: Speaker,
        said: Sequence[Said],
        thread: Thread,
        *,
        is_start: bool = False,
    ) -> Memories:
        """The page about the user, and the memories about their newest message."""
        owner = PromptOwner(store, speaker.agent_id, speaker.user_id, _conversation_of(speaker, said, thread))
        asked = [each.text for each in said if each.role == "user"]
        # With turns at the provider, a call has no more of them than its own: equal words are no equal turn.
        turn = turn_key(asked) if asked and thread == Thread() else None
        known = None if turn is None or is_start else self._prompts.parts_of_turn(owner, turn)
        if known is not None:
            return _added(known)
        return await self._compose(owner, said, asked, turn, is_start=is_start)

    async def aclose(self) -> None:
        """Stop late recalls."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _compose(
        self,
        owner: PromptOwner,
        said: Sequence[Said],
        asked: Sequence[str],
        turn: str | None,
        *,
        is_start: bool,
    ) -> Memories:
        if max(len(self._late_pages), len(self._late_recalls)) >= _MOST_LATE:
            return Memories("slow", self._prompts.parts_of(owner, None, None, self._options))
        question = _shortened(asked[-1]) if asked else ""
        fixed, found = await asyncio.gather(
            self._in_time(self._prompts.fix_page(owner, self._options, is_start=is_start), self._late_pages),
            self._in_time(recall(owner, question, self._options), self._late_recalls),
        )
        parts = self._prompts.parts_of(
            owner,
            None if isinstance(fixed, str) else fixed,
            None if isinstance(found, str) else found,
            self._options,
            seen=[each.text for each in said],
        )
        for missing in (fixed, found):
            if isinstance(missing, str):
                return Memories(missing, parts)
        if turn is not None:
            self._prompts.note_turn(owner, turn, parts)
        return _added(parts)

    async def _in_time(self, call: Coroutine[Any, Any, T], late: set[asyncio.Task[Any]]) -> T | _Missing:
        task = asyncio.create_task(call)
        self._running.add(task)
        task.add_done_callback(self._end)
        try:
            await asyncio.wait([task], timeout=self._seconds)
        finally:  # also if the call was given up
            if not task.done():
                late.add(task)
        if not task.done():
            return "slow"
        return "failed" if task.cancelled() or task.exception() is not None else task.result()

    def _end(self, task: "asyncio.Task[Any]") -> None:
        self._running.discard(task)
        self._late_pages.discard(task)
        self._late_recalls.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        if not isinstance(error, RecollectError | OSError):
            logger.error("recalling for a proxied call failed unexpectedly", exc_info=error)
        else:
            logger.warning("recalling for a proxied call failed", extra={"error": type(error).__name__})


def _conversation_of(speaker: Speaker, said: Sequence[Said], thread: Thread) -> str:
    """A key for the conversation of a call. Calls that continue a response share one."""
    known = speaker.session_id or thread.conversation
    if known is not None:
        return f"id:{known}"
    if thread.previous_response is not None:
        return "continued"
    return conversation_key(said[0].text if said else "")


def _added(parts: PromptParts) -> Memories:
    return Memories("added" if parts.page or parts.tail else "none", parts)


def _shortened(question: str) -> str:
    """The start and the end of a long message: that is where its question is."""
    if len(question) <= _LONGEST_QUERY:
        return question
    half = _LONGEST_QUERY // 2
    return f"{question[:half]}\n{question[-half:]}"
