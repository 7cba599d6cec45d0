"""Searches of entries and messages, and recall."""

from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from pydantic import Field

from ...memory.search.relevance import DEFAULT_CUT
from . import examples
from .base import (
    Bound,
    Key,
    Metadata,
    Name,
    OwnerId,
    RequestBody,
    ResponseBody,
    Tags,
    Time,
    with_examples,
)
from .conversations import MessagePayload, Role
from .entries import ContentType, EntryPayload

Question: TypeAlias = Annotated[str, Field(max_length=100_000, description="A question or keywords.")]
AnyAgent: TypeAlias = Annotated[OwnerId, Field(description="All agents of the user if absent.")] | None
Chance: TypeAlias = Annotated[float, Field(ge=0, le=1)]
HitLimit: TypeAlias = Annotated[int, Field(ge=1, description="The most hits to return.")]

_FOUND = {**examples.ENTRY, "evidence": []}


class SearchFilters(TypedDict):
    """The filters of a search, as the store takes them."""

    since: str | None
    until: str | None
    tags: list[str] | None
    metadata: dict[str, Any] | None
    role: Role | None
    name: str | None


class OwnedSearch(RequestBody):
    """A query about one user, with one agent or all, and filters."""

    query: Question
    agent_id: AnyAgent = None
    user_id: OwnerId
    since: Bound | None = None
    until: Bound | None = None
    tags: Annotated[Tags, Field(description="Only what has all of these tags.")] | None = None
    metadata: (
        Annotated[Metadata, Field(description="Only what has equal values under these top-level keys.")]
        | None
    ) = None
    role: Annotated[Role, Field(description="Only what a speaker of this role said.")] | None = None
    name: Annotated[Name, Field(description="Only what the speaker of this name said.")] | None = None

    def filters(self) -> SearchFilters:
        """The filters, as the store takes them."""
        return {
            "since": self.since,
            "until": self.until,
            "tags": self.tags,
            "metadata": self.metadata,
            "role": self.role,
            "name": self.name,
        }


class _Search(OwnedSearch):
    """A search for hits."""

    limit: HitLimit | None = None
    min_score: Annotated[Chance, Field(description="Only hits with at least this chance.")] | None = None
    min_relevance: (
        Annotated[Chance, Field(description="No hits if `relevance` would be lower than this.")] | None
    ) = None
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
    score: float = Field(description="The chance that the hit is relevant, from 0 to 1.")
    parts: dict[str, float] | None = Field(
        default=None, description="What the hit is ranked by; only with `explain`."
    )


class EntryHit(_Hit):
    """An entry that matches a search."""

    entry: EntryPayload


class MessageHit(_Hit):
    """A message that matches a search."""

    message: MessagePayload
    conversation_id: str
    session_id: str
    passage: str = Field(description="The part of a long message that matches best; all of a short one.")


class _SearchResponse(ResponseBody):
    warnings: list[str] = Field(description="Why the results may be incomplete, such as missing vectors.")


class _RankedResponse(_SearchResponse):
    relevance: float = Field(description="The chance that there is anything to say about the query.")


class MemorySearchResponse(_RankedResponse):
    """Entries, best match first."""

    model_config = with_examples(
        {
            "items": [{"entry": _FOUND, "agent_id": examples.AGENT, "score": 0.71}],
            "relevance": 0.89,
            "warnings": [],
        }
    )

    items: list[EntryHit]


class ConversationSearchResponse(_RankedResponse):
    """Messages, best match first."""

    model_config = with_examples(
        {
            "items": [
                {
                    "message": examples.MESSAGE,
                    "conversation_id": examples.CONVERSATION_ID,
                    "session_id": examples.SESSION_ID,
                    "agent_id": examples.AGENT,
                    "passage": examples.MESSAGE["content"],
                    "score": 0.64,
                    "parts": {"text": 0.4, "vector": 0.24},
                }
            ],
            "relevance": 0.82,
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
    min_relevance: Chance = Field(
        default=DEFAULT_CUT, description="The text is empty if the relevance of the query is lower than this."
    )
    explain: bool = Field(default=False, description="Include the parts of each score.")


class RecalledLine(ResponseBody):
    """A line of the text: a fact that was learned, a quote of a message, or a wish of the user."""

    kind: Literal["fact", "quote", "wish"]
    id: Key = Field(description="The id of the entry or of the message.")
    text: str
    time: Time = Field(description="When it was said, or learned if that is not known.")
    score: Chance = Field(description="The chance that it is relevant.")
    reason: Literal["relevant", "earlier", "doubtful", "standing"] = Field(
        description="Why it is there: it is relevant, it held earlier, it may not hold any more, or it is a"
        " standing wish."
    )
    conversation_id: Key | None = Field(description="The conversation of a quoted message.")
    messages: list[list[Key]] = Field(
        description="The messages that it shows or rests on: the ids of the conversation and of the message."
    )
    position: int = Field(description="The position of a quoted message in its conversation.")


class RecallResponse(_SearchResponse):
    """What is remembered, as a text that is marked as data; empty if nothing is found."""

    model_config = with_examples(
        {
            "text": "",
            "instructions": [],
            "entries": [],
            "turns": [],
            "lines": [],
            "now": examples.ENTRY["learned_at"],
            "warnings": [],
        }
    )

    text: str
    instructions: list[EntryPayload] = Field(
        description="The standing instructions of the user in the text, whatever the query is."
    )
    entries: list[EntryHit] = Field(description="The entries in the text, in its order.")
    turns: list[MessageHit] = Field(description="The messages in the text, each with the quoted passage.")
    lines: list[RecalledLine] = Field(description="The lines of the text.")
    now: Time = Field(description="The time that the text gives as now.")


Texts: TypeAlias = Annotated[list[Question], Field(max_length=1000)]


class PromptRequest(RequestBody):
    """The newest message of a user, for what memory adds to the prompt."""

    model_config = with_examples(
        {"query": "What should I cook?", "agent_id": examples.AGENT, "user_id": examples.OTHER_USER}
    )

    query: Question
    agent_id: OwnerId
    user_id: OwnerId
    conversation_id: Annotated[Key, Field(description="Else it is known by its first message.")] | None = None
    said: Texts = Field(
        default_factory=list, description="What the user has said before, which the model sees."
    )
    answered: Texts = Field(default_factory=list, description="What was answered, which the model sees.")
    is_start: bool = Field(default=False, description="Whether the conversation starts with this message.")
    page_budget: int = Field(default=600, ge=0, le=100_000, description="The most tokens of the page.")
    budget: int = Field(default=1000, ge=1, le=1_000_000, description="The most tokens of the tail.")
    refresh: Literal["turn", "conversation"] = Field(
        default="conversation",
        description="When the page is written anew: in each turn, or when a conversation starts or was idle.",
    )


class PromptResponse(ResponseBody):
    """What memory adds to a prompt. Both texts are marked as data, and empty if there is nothing to add."""

    model_config = with_examples(
        {
            "page": "",
            "tail": "",
            "page_version": "0000000000000000",
            "page_fixed_at": examples.ENTRY["learned_at"],
            "lines": [],
            "changed": [],
        }
    )

    page: str = Field(description="For the system text, after your own instructions.")
    tail: str = Field(description="For the place right after the newest message of the user.")
    page_version: str = Field(description="Two pages with the same version are the same.")
    page_fixed_at: Time | None = Field(description="Since when the conversation has this page.")
    lines: list[RecalledLine] = Field(description="The lines of the tail.")
    changed: list[Key] = Field(description="The entries that have changed since the page was fixed.")
