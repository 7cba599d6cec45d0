"""Memories: all entries of one agent about one user."""

from typing import Annotated, Any, TypeAlias

from pydantic import Field

from . import examples
from .base import (
    MAX_ITEMS,
    Key,
    NextCursor,
    OwnerId,
    RequestBody,
    ResponseBody,
    Text,
    Timestamp,
    with_examples,
)

Contents: TypeAlias = Annotated[list[Text], Field(max_length=MAX_ITEMS, fail_fast=True)]

_MEMORY: dict[str, Any] = {
    "memory_id": examples.WRITTEN_MEMORY_ID,
    "agent_id": examples.AGENT,
    "user_id": examples.OTHER_USER,
    "created_at": examples.TIME,
    "updated_at": examples.TIME,
    "version": 2,
    "profile_content": ["The user plays the cello."],
    "event_content": [],
    "mind_content": [],
}


class MemoryPayload(ResponseBody):
    """What an agent knows about a user."""

    model_config = with_examples(_MEMORY)

    memory_id: str
    agent_id: str
    user_id: str
    created_at: Timestamp
    updated_at: Timestamp
    version: int = Field(description="The number of changes; also the ETag.")
    profile_content: list[str]
    event_content: list[str]
    mind_content: list[str]
    instruction_content: list[str] = Field(
        default_factory=list, description="The standing instructions; absent if there are none."
    )


class EntryCounts(ResponseBody):
    """The number of current entries by type."""

    profile: int
    event: int
    mind: int
    instruction: int


class MemoryOutline(ResponseBody):
    """A memory without its contents."""

    memory_id: str
    agent_id: str
    user_id: str
    created_at: Timestamp
    updated_at: Timestamp
    version: int
    counts: EntryCounts


class MemoryPage(ResponseBody):
    """Memories, ordered by id."""

    model_config = with_examples(
        {
            "items": [
                {
                    "memory_id": examples.MEMORY_ID,
                    "agent_id": examples.AGENT,
                    "user_id": examples.USER,
                    "created_at": examples.TIME,
                    "updated_at": examples.TIME,
                    "version": 2,
                    "counts": {"profile": 1, "event": 0, "mind": 0, "instruction": 0},
                }
            ],
            "next_cursor": None,
        }
    )

    items: list[MemoryOutline]
    next_cursor: NextCursor


class NewMemory(RequestBody):
    """The initial contents of a memory."""

    model_config = with_examples(
        {
            "agent_id": examples.AGENT,
            "user_id": examples.OTHER_USER,
            "profile_content": ["The user plays the cello."],
        }
    )

    agent_id: OwnerId
    user_id: OwnerId
    memory_id: Annotated[Key, Field(description="Generated if absent.")] | None = None
    profile_content: Contents = Field(default_factory=list)
    event_content: Contents = Field(default_factory=list)
    mind_content: Contents = Field(default_factory=list)
    instruction_content: Contents = Field(default_factory=list)


class MemoryChange(RequestBody):
    """A given list replaces the stored one; an absent list stays unchanged."""

    model_config = with_examples({"event_content": ["The user gave a concert on 3 May 2026."]})

    profile_content: Contents | None = None
    event_content: Contents | None = None
    mind_content: Contents | None = None
    instruction_content: Contents | None = None
