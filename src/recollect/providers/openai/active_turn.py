"""A turn while it runs: its state, its messages, and the parts that it works with."""

import asyncio
import uuid
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ...cancellation import wait_until_done
from ...errors import InvalidTypeError, InvalidValueError
from ...items import ModelUsage
from ...memory.conversation import Message
from ...memory.pipeline.token_meter import GuardedMeter
from ...sessions.events import EventLog
from ...strategies.session import StrategySession
from ...strategies.summaries import ConversationSummaryStore
from ..values import ChatTurn
from .database.record import TurnRecord
from .database.turns import ChatTurns
from .options import ChatOptions
from .registry import AgentDescriptor
from .runtime import AgentRuntime, Run
from .sessions import ChatSession, ChatSessionManager, log_of


@dataclass(frozen=True)
class Parts:
    """What turns are made with."""

    runtime: AgentRuntime
    sessions: ChatSessionManager
    turns: ChatTurns
    events: EventLog
    summaries: ConversationSummaryStore
    options: ChatOptions
    meter: GuardedMeter


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
    await wait_until_done(task)
    return task.result()


_IDS = uuid.UUID("8f1d5a52-6f0c-4a55-9a3e-6d1f5f0c1c8e")


def message_id(turn_id: str, role: str) -> str:
    """The id of a turn's message, always the same, so that nothing is written twice."""
    return str(uuid.uuid5(_IDS, f"{turn_id}/{role}"))


def check_message(message: object) -> None:
    """Refuse what no model can be asked."""
    if not isinstance(message, str):
        raise InvalidTypeError(f"message must be text, not {type(message).__name__}")
    if not message.strip():
        raise InvalidValueError("message must not be empty")
    try:
        message.encode()
    except UnicodeEncodeError:
        raise InvalidValueError("message holds half a character, which cannot be sent") from None


async def append_message(
    turn: ChatTurn, role: str, text: str, quiet: float | None, *, even_if_closed: bool = False
) -> Message:
    """Write a message of a turn into its conversation; one that is there already stays as it is."""
    message = {"role": role, "content": text, "message_id": message_id(turn.turn_id, role)}
    placed = await turn.store.append_messages(
        turn.conversation.conversation_id, [message], learn_after=quiet, even_if_closed=even_if_closed
    )
    return placed[0]
