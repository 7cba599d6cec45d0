"""An extractor for tests, which learns given facts and waits, fails or hangs on demand."""

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from recollect.memory.entry import Entry
from recollect.memory.pipeline.stages import (
    Answer,
    Candidate,
    Excerpt,
    Mind,
    Modification,
    Stage,
    Update,
    Usage,
)

CALM = "The user seems calm"


class Call(NamedTuple):
    """A stage that was asked for, over messages that begin so."""

    stage: Stage
    said: str


@dataclass(frozen=True)
class Hold:
    """A call that waits until the test lets it go on."""

    reached: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    async def __call__(self) -> None:
        self.reached.set()
        while not self.go.is_set():  # noqa: ASYNC110 - the event is of another thread
            await asyncio.sleep(0.002)

    async def wait(self) -> None:
        """Until the call is there."""
        assert await asyncio.to_thread(self.reached.wait, 20), "nobody has called"


Act = BaseException | Callable[[], Awaitable[None]]


class ScriptedExtractor:
    """Learns each user message as an event, and that the user is calm."""

    model = "scripted"

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.at_once = 0
        self.most_at_once = 0
        self.is_closed = False
        self._acts: dict[Stage, deque[Act]] = {"modification": deque(), "update": deque(), "mind": deque()}

    def next(self, stage: Stage, *acts: Act) -> None:
        """What the next calls of a stage do before they answer, one each: raise, or wait."""
        self._acts[stage].extend(acts)

    def hold(self, stage: Stage) -> Hold:
        """Let the next call of a stage wait."""
        hold = Hold()
        self.next(stage, hold)
        return hold

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        await self._called("modification", excerpt)
        candidates = tuple(
            Candidate("event", message.content, (message.message_id,))
            for message in excerpt.messages
            if message.role == "user"
        )
        return Answer(Modification("what is new", candidates), "raw modification", Usage(3, 4))

    async def update(
        self,
        excerpt: Excerpt,
        candidates: Sequence[Candidate],  # noqa: ARG002 - all of them are added
        known: Sequence[Entry],  # noqa: ARG002
    ) -> Answer[Update]:
        await self._called("update", excerpt)
        return Answer(Update(()), "raw update", Usage(5, 6))

    async def mind(self, excerpt: Excerpt, known: Sequence[Entry]) -> Answer[Mind]:  # noqa: ARG002
        await self._called("mind", excerpt)
        calm = Candidate("mind", CALM, (excerpt.messages[0].message_id,), 0.5)
        return Answer(Mind("calm", 0.5, (calm,)), "raw mind", Usage(7, 8))

    async def aclose(self) -> None:
        self.is_closed = True

    async def _called(self, stage: Stage, excerpt: Excerpt) -> None:
        self.calls.append(Call(stage, excerpt.messages[0].content))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self._act(stage)
        finally:
            self.at_once -= 1

    async def _act(self, stage: Stage) -> None:
        act = self._acts[stage].popleft() if self._acts[stage] else None
        if isinstance(act, BaseException):
            raise act
        if act is not None:
            await act()


async def hang() -> None:
    """Never come back."""
    await asyncio.Event().wait()


class DiaryExtractor:
    """Learns "I went …" as an event on the day it is said, and anything else as a lasting fact."""

    model = "diary"
    asks_no_model = True

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        found = []
        for message in excerpt.messages:
            for said in filter(None, message.content.split(". ")):
                text = said.rstrip(".").removesuffix(" today").replace("I have", "The user has", 1)
                day = message.created_at.date().isoformat() if said.startswith("I went") else None
                text = text.replace("I ", "The user ", 1) + (f" on {day}." if day else ".")
                found.append(
                    Candidate("event" if day else "profile", text, (message.message_id,), 0.9, valid_from=day)
                )
        return Answer(Modification("", tuple(found)))

    async def update(
        self,
        excerpt: Excerpt,  # noqa: ARG002
        candidates: Sequence[Candidate],  # noqa: ARG002
        known: Sequence[Entry],  # noqa: ARG002
    ) -> Answer[Update]:
        return Answer(Update(()))

    async def mind(self, excerpt: Excerpt, known: Sequence[Entry]) -> Answer[Mind]:  # noqa: ARG002
        return Answer(Mind("", None, ()))

    async def aclose(self) -> None:
        return
