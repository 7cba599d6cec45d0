"""What the provider is put together from."""

from dataclasses import dataclass

from ...memory.pipeline.token_meter import Metered
from ...sessions.events import EventLog
from ...strategies.summaries import ConversationSummaryStore
from .database.turns import ChatTurns
from .options import ChatOptions
from .runtime import AgentRuntime
from .sessions import ChatSessionManager


@dataclass(frozen=True)
class Parts:
    """What turns are made with."""

    runtime: AgentRuntime
    sessions: ChatSessionManager
    turns: ChatTurns
    events: EventLog
    summaries: ConversationSummaryStore
    options: ChatOptions
    meter: Metered
