"""A turn that is on its way, and how what must be finished is finished."""

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ...items import ModelUsage
from ...strategies.session import StrategySession
from ..values import ChatTurn
from .chat_session import ChatSession
from .database.record import TurnRecord
from .registry import AgentDescriptor
from .runtime import Run
from .sessions import log_of

T = TypeVar("T")


@dataclass
class UnderWay:
    """A turn whose beginning is recorded; the rest comes as it goes on."""

    turn: ChatTurn
    descriptor: AgentDescriptor
    record: TurnRecord
    before: ModelUsage = field(default_factory=ModelUsage)
    """What it had cost when it was tried before."""
    session: StrategySession | None = None
    run: Run | None = None
    is_counted: bool = False
    """Whether the meter has been told what it cost."""

    @property
    def log(self) -> ChatSession | None:
        """The session itself, once there is one."""
        return None if self.session is None else log_of(self.session)

    @property
    def usage(self) -> ModelUsage:
        """What it has cost so far, this time."""
        return ModelUsage() if self.run is None else self.run.usage

    @property
    def counted(self) -> TurnRecord:
        """The record, with what it has cost each time."""
        return replace(self.record, usage=self.before + self.usage)


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """Do something to its end, also where whoever waits for it is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    return task.result()
