"""Searches of entries and messages, and recall."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from ...memory.operations.search import (
    Recall,
    SearchConversations,
    SearchConversationsOfUsers,
    SearchMemories,
    SearchMemoriesOfUsers,
)
from . import examples
from .base import Key, OwnerId, RequestBody, ResponseBody, Time, with_examples
from .conversations import MessagePayload
from .entries import EntryPayload
from .operations import Chance, Question, request_body

_FOUND = {**examples.ENTRY, "evidence": []}


class ExplainedSearch(RequestBody):
    """What a search can be asked for over HTTP besides its arguments."""

    explain: bool = Field(default=False, description="Include the parts of each score.")


MemorySearchRequest = request_body(
    "MemorySearchRequest",
    ExplainedSearch,
    SearchMemories,
    {"query": "Does he play music?", "agent_id": examples.AGENT, "user_id": examples.OTHER_USER},
)
ConversationSearchRequest = request_body(
    "ConversationSearchRequest",
    ExplainedSearch,
    SearchConversations,
    {
        "query": "Where does she live?",
        "agent_id": examples.AGENT,
        "user_id": examples.USER,
        "explain": True,
    },
)
UsersMemorySearchRequest = request_body(
    "UsersMemorySearchRequest",
    ExplainedSearch,
    SearchMemoriesOfUsers,
    {"query": "Who is allergic to nuts?", "agent_id": examples.AGENT},
)
UsersConversationSearchRequest = request_body(
    "UsersConversationSearchRequest",
    ExplainedSearch,
    SearchConversationsOfUsers,
    {"query": "Who asked about refunds?", "since": "2025-05"},
)
RecallRequest = request_body(
    "RecallRequest",
    ExplainedSearch,
    Recall,
    {
        "query": "What should I cook?",
        "agent_id": examples.AGENT,
        "user_id": examples.OTHER_USER,
        "budget": 500,
    },
)


class _Hit(ResponseBody):
    agent_id: str = Field(description="The agent of the memory or conversation.")
    user_id: str = Field(description="The user of the memory or conversation.")
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
            "items": [{"entry": _FOUND, "agent_id": examples.AGENT, "user_id": examples.USER, "score": 0.71}],
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
                    "user_id": examples.USER,
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


Texts: TypeAlias = Annotated[list[Question], Field(max_length=1000, fail_fast=True)]


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
