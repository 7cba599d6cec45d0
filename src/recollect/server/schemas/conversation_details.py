"""Details of a conversation: memory settings, events, usage, and the view of the model."""

from typing import Annotated, Any

from pydantic import Field

from . import examples
from .base import NextCursor, PageQuery, RequestBody, ResponseBody, Timestamp, with_examples
from .strategies import MemoryStrategy

_STRATEGY = {"mode": "trim", "max_user_turns": 20}


class MemorySettings(ResponseBody):
    """The strategy of a conversation, and whether memories are injected."""

    model_config = with_examples(
        {
            "conversation_id": examples.CONVERSATION_ID,
            "memory_strategy": None,
            "memory_injection": None,
            "version": 1,
        }
    )

    conversation_id: str
    memory_strategy: dict[str, Any] | None = Field(
        description="Null if the agent's own strategy, or none, is used."
    )
    memory_injection: bool | None
    version: int = Field(description="The number of changes; also the ETag.")


class MemorySettingsChange(RequestBody):
    """The settings to change. An absent field stays unchanged; null clears a field."""

    model_config = with_examples({"memory_strategy": _STRATEGY, "memory_injection": True})

    memory_strategy: MemoryStrategy | None = None
    memory_injection: bool | None = None


class EventPayload(ResponseBody):
    """An event of a chat. Fields that do not apply are null."""

    sequence_number: int
    item_type: str
    item_name: str | None
    role: str | None
    agent: str | None
    model: str | None
    response_id: str | None
    tool_call_id: str | None
    tool_name: str | None
    text: str | None
    reasoning_text: str | None
    call_arguments: str | None
    call_output: str | None
    attachments: list[dict[str, Any]]
    created_at: Timestamp
    ingested_at: Timestamp


class EventQuery(PageQuery):
    """Filters of the list of events."""

    from_sequence: (
        Annotated[int, Field(ge=0, le=2**31, description="The sequence number of the first event.")] | None
    ) = None


class EventPage(ResponseBody):
    """Events in order."""

    model_config = with_examples({"items": [], "next_cursor": None})

    items: list[EventPayload]
    next_cursor: NextCursor


class UsageTotals(ResponseBody):
    """Sums of requests and tokens."""

    requests: int
    input_tokens: int
    output_tokens: int
    total_tokens: int


class ConversationUsage(ResponseBody):
    """The usage of a chat, in total and by turn."""

    model_config = with_examples(
        {
            "conversation_id": examples.CONVERSATION_ID,
            "totals": {"requests": 0, "input_tokens": 0, "output_tokens": 0, "total_tokens": 0},
            "by_turn": [],
            "turns": [],
        }
    )

    conversation_id: str
    totals: UsageTotals
    by_turn: list[dict[str, Any]] = Field(description="The tokens of each user turn of the current branch.")
    turns: list[dict[str, Any]] = Field(description="The turns of the chat, with their status and tokens.")


class ViewResponse(ResponseBody):
    """The items that the model would see now, under a strategy."""

    model_config = with_examples(
        {
            "conversation_id": examples.CONVERSATION_ID,
            "memory_strategy": _STRATEGY,
            "memories": "",
            "items": [{"role": "user", "content": "I live in Lisbon."}],
            "tail": "",
        }
    )

    conversation_id: str
    memory_strategy: dict[str, Any] | None
    memories: str = Field(
        description="The page about the user that follows the instructions; empty without injection."
    )
    items: list[dict[str, Any]]
    tail: str = Field(
        description="What is remembered about the newest user message, after it; empty without injection."
    )
