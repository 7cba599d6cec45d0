"""A turn while it runs: its state, its messages, and the parts that it works with."""

import uuid
from dataclasses import dataclass, field, replace

from ...errors import InvalidTypeError, InvalidValueError
from ...items import ModelUsage
from ...memory.conversation import ConversationSettings, Message
from ...memory.pipeline.token_meter import GuardedMeter
from ...memory.prompting import PromptMemory, PromptParts
from ...sessions.events import EventLog
from ...sql.scripts import MakeScript
from ...strategies.session import StrategySession
from ...strategies.summaries import ConversationSummaryStore
from ...strategies.summarizers.protocol import Summarizer
from ...strategies.values import Strategy
from ..values import ChatTurn
from .database.record import TurnRecord, memory_of
from .database.turns import ChatTurns
from .options import ChatOptions
from .registry import AgentDescriptor
from .run_session import RunSession
from .runtime import AgentRun, AgentRuntime
from .sessions import ChatSession, OpenAISQLAlchemySessionStore
from .turn_scripts import Begun

_MESSAGE_IDS = uuid.UUID("8f1d5a52-6f0c-4a55-9a3e-6d1f5f0c1c8e")


@dataclass(frozen=True)
class Parts:
    """The parts of a provider, all on one database."""

    runtime: AgentRuntime
    sessions: OpenAISQLAlchemySessionStore
    turns: ChatTurns
    events: EventLog
    summaries: ConversationSummaryStore
    options: ChatOptions
    meter: GuardedMeter
    summarizer: Summarizer | None = None
    prompts: PromptMemory = field(default_factory=PromptMemory)

    def view(self, chat: ChatSession, strategy: Strategy | None) -> StrategySession:
        """A session as a strategy shows it to the model. Its summaries are stored."""
        return StrategySession(
            chat.session, strategy, summarizer=self.summarizer, on_summary=self.summaries.on_summary
        )


@dataclass
class ActiveTurn:
    """The state of a turn that is recorded as running."""

    turn: ChatTurn
    descriptor: AgentDescriptor
    settings: ConversationSettings
    chat: ChatSession
    session: RunSession
    begun: Begun
    earlier_usage: ModelUsage = field(default_factory=ModelUsage)
    """The cost of earlier attempts."""
    run: AgentRun | None = None
    """Set once the run has started."""
    remembered: PromptParts | None = None
    """What the prompt has from memory, once that is known."""
    is_metered: bool = False
    """Whether the token meter has counted this attempt."""

    @property
    def usage(self) -> ModelUsage:
        """The cost of this attempt so far."""
        return ModelUsage() if self.run is None else self.run.usage

    @property
    def record_with_usage(self) -> TurnRecord:
        """The record, with the cost of all attempts, and with what the prompt had from memory."""
        memory = None if self.remembered is None else memory_of(self.remembered)
        cached = 0 if self.run is None else self.run.cached_tokens
        usage = self.earlier_usage + self.usage
        return replace(self.begun.record, usage=usage, cached_tokens=cached, memory=memory)


def message_id(turn_id: str, role: str) -> str:
    """The id of a message of a turn. It is always the same, so no message is written twice."""
    return str(uuid.uuid5(_MESSAGE_IDS, f"{turn_id}/{role}"))


def check_message(message: object) -> None:
    """Raise an error for a message that cannot be sent to a model."""
    if not isinstance(message, str):
        raise InvalidTypeError(f"message must be text, not {type(message).__name__}")
    if not message.strip():
        raise InvalidValueError("message must not be empty")
    try:
        message.encode()
    except UnicodeEncodeError:
        raise InvalidValueError("message holds half a character, which cannot be sent") from None


def append_script(
    turn: ChatTurn,
    role: str,
    text: str,
    quiet: float | None,
    *,
    is_notice: bool = False,
    even_if_closed: bool = False,
) -> MakeScript[list[Message]]:
    """A step that appends a message of a turn to its conversation, unless it exists already.

    A notice was not said by anybody. It is stored as a system message, which no search finds.
    """
    stored_role = "system" if is_notice else role
    message = {"role": stored_role, "content": text, "message_id": message_id(turn.turn_id, role)}
    return turn.store.writer.append_script(
        turn.conversation.conversation_id, [message], learn_after=quiet, even_if_closed=even_if_closed
    )
