"""What belongs to a conversation: its settings, events, usage, branches, and what the model would see."""

from typing import Annotated, Any

from pydantic import Field

from . import examples
from .base import Answer, Asked, NextCursor, Paged, TimeTold, exampled
from .strategies import MemoryStrategy

_STRATEGY = {"mode": "trim", "max_user_turns": 20}
_BRANCH = {
    "name": "main",
    "is_current": True,
    "from_branch": None,
    "from_turn": None,
    "item_count": 3,
    "user_turn_count": 2,
    "turn_count": 2,
    "created_at": examples.TIME,
}
_NEW_BRANCH = {
    "name": "other-city",
    "is_current": True,
    "from_branch": "main",
    "from_turn": 1,
    "item_count": 0,
    "user_turn_count": 0,
    "turn_count": 0,
    "created_at": examples.LATER,
}


class MemorySettings(Answer):
    """How the model's view of a conversation is made, and whether memories are injected."""

    model_config = exampled(
        {
            "conversation_id": examples.CONVERSATION_ID,
            "memory_strategy": None,
            "memory_injection": None,
            "version": 1,
        }
    )

    conversation_id: str
    memory_strategy: dict[str, Any] | None = Field(
        description="Null where the agent's own, or none, is used."
    )
    memory_injection: bool | None
    version: int = Field(description="Counts the changes; also the ETag.")


class MemorySettingsChange(Asked):
    """What to change. A field that is absent stays as it is; null clears it."""

    model_config = exampled({"memory_strategy": _STRATEGY, "memory_injection": True})

    memory_strategy: MemoryStrategy | None = None
    memory_injection: bool | None = None


class EventTold(Answer):
    """Something that happened in a chat; what does not apply is null."""

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
    created_at: TimeTold
    ingested_at: TimeTold


class EventQuery(Paged):
    """Which events are listed."""

    from_sequence: (
        Annotated[int, Field(ge=0, le=2**31, description="The sequence number of the first.")] | None
    ) = None


class EventPage(Answer):
    """Events in their order."""

    model_config = exampled({"items": [], "next_cursor": None})

    items: list[EventTold]
    next_cursor: NextCursor


class UsageTotals(Answer):
    """Tokens, summed up."""

    requests: int
    input_tokens: int
    output_tokens: int
    total_tokens: int


class UsageTold(Answer):
    """What the chat has cost, in all and turn by turn."""

    model_config = exampled(
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


class BranchTold(Answer):
    """A branch of a chat."""

    model_config = exampled(_BRANCH)

    name: str
    is_current: bool
    from_branch: str | None = Field(description="The branch that it was made from; null for main.")
    from_turn: int | None = Field(description="The user turn before which it was made.")
    item_count: int
    user_turn_count: int = Field(description="The number of user turns.")
    turn_count: int = Field(
        deprecated=True,
        description="The same as `user_turn_count`. In a conversation, `turn_count` counts messages.",
    )
    created_at: TimeTold | None


class Branches(Answer):
    """The branches of a chat."""

    model_config = exampled({"items": [_BRANCH]})

    items: list[BranchTold]


BranchName = Annotated[
    str, Field(min_length=1, max_length=255, pattern=r"^[^\u0000]+$", examples=["other-city"])
]


class NewBranch(Asked):
    """A branch that holds everything before a user turn, and becomes the current one."""

    model_config = exampled({"from_turn": 1, "name": "other-city"})

    from_turn: int = Field(ge=1, le=2**31, description="The user turn, from 1.")
    name: Annotated[BranchName, Field(description="Made if absent.")] | None = None


class BranchChoice(Asked):
    """The branch on which the chat goes on."""

    model_config = exampled({"name": "main"})

    name: BranchName


class BranchMade(BranchTold):
    """A branch that was made, and is current."""

    model_config = exampled(_NEW_BRANCH)


class ViewTold(Answer):
    """The items that a model would be shown now, under a strategy."""

    model_config = exampled(
        {
            "conversation_id": examples.CONVERSATION_ID,
            "memory_strategy": _STRATEGY,
            "items": [{"role": "user", "content": "I live in Lisbon."}],
        }
    )

    conversation_id: str
    memory_strategy: dict[str, Any] | None
    items: list[dict[str, Any]]
