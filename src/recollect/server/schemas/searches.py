"""Searches of entries and messages, and recall."""

from typing import Annotated, TypeAlias

from pydantic import Field

from . import examples
from .base import Bound, Key, OwnerId, RequestBody, ResponseBody, Time, with_examples
from .conversations import MessagePayload
from .entries import ContentType, EntryPayload

Question: TypeAlias = Annotated[str, Field(max_length=100_000, description="A question or keywords.")]
AnyAgent: TypeAlias = Annotated[OwnerId, Field(description="All agents of the user if absent.")] | None
HitLimit: TypeAlias = Annotated[int, Field(ge=1, description="The most hits to return.")]

_FOUND = {**examples.ENTRY, "evidence": []}


class OwnedSearch(RequestBody):
    """A query about one user, with one agent or all."""

    query: Question
    agent_id: AnyAgent = None
    user_id: OwnerId


class _Search(OwnedSearch):
    """A search with filters."""

    limit: HitLimit | None = None
    since: Bound | None = None
    until: Bound | None = None
    explain: bool = Field(default=False, description="Include the parts of each score.")


class MemorySearchRequest(_Search):
    """A search of entries."""

    model_config = with_examples(
        {"query": "Does he play music?", "agent_id": examples.AGENT, "user_id": examples.OTHER_USER}
    )

    content_type: ContentType | None = None
    as_of: Annotated[Time, Field(description="Search the entries as known at this time.")] | None = None


class ConversationSearchRequest(_Search):
    """A search of messages."""

    model_config = with_examples(
        {
            "query": "Where does she live?",
            "agent_id": examples.AGENT,
            "user_id": examples.USER,
            "explain": True,
        }
    )

    session_id: Key | None = None


class _Hit(ResponseBody):
    agent_id: str = Field(description="The agent of the memory or conversation.")
    score: float
    parts: dict[str, float] | None = Field(
        default=None, description="The parts of the score; only with `explain`."
    )


class EntryHit(_Hit):
    """An entry that matches a search."""

    entry: EntryPayload


class MessageHit(_Hit):
    """A message that matches a search."""

    message: MessagePayload
    conversation_id: str
    session_id: str


class _SearchResponse(ResponseBody):
    warnings: list[str] = Field(description="Why the results may be incomplete, such as missing vectors.")


class MemorySearchResponse(_SearchResponse):
    """Entries, best match first."""

    model_config = with_examples(
        {"items": [{"entry": _FOUND, "agent_id": examples.AGENT, "score": 0.71}], "warnings": []}
    )

    items: list[EntryHit]


class ConversationSearchResponse(_SearchResponse):
    """Messages, best match first."""

    model_config = with_examples(
        {
            "items": [
                {
                    "message": examples.MESSAGE,
                    "conversation_id": examples.CONVERSATION_ID,
                    "session_id": examples.SESSION_ID,
                    "agent_id": examples.AGENT,
                    "score": 0.64,
                    "parts": {"text": 0.4, "vector": 0.24},
                }
            ],
            "warnings": [],
        }
    )

    items: list[MessageHit]


class RecallRequest(OwnedSearch):
    """A query for a block of text that goes into a prompt."""

    model_config = with_examples(
        {
            "query": "What should I cook?",
            "agent_id": examples.AGENT,
            "user_id": examples.OTHER_USER,
            "budget": 500,
        }
    )

    budget: int = Field(default=1000, ge=1, le=1_000_000, description="The most tokens of the text.")
    explain: bool = Field(default=False, description="Include the parts of each score.")


class RecallResponse(_SearchResponse):
    """What is remembered, as a text that is marked as data; empty if nothing is found."""

    model_config = with_examples({"text": "", "instructions": [], "entries": [], "turns": [], "warnings": []})

    text: str
    instructions: list[EntryPayload] = Field(
        description="The standing instructions of the user, whatever the query is."
    )
    entries: list[EntryHit]
    turns: list[MessageHit]
