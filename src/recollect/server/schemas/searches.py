"""Questions to memories and conversations, and what is found."""

from typing import Annotated, TypeAlias

from pydantic import Field

from . import examples
from .base import Bound, Key, OwnerId, RequestBody, ResponseBody, Time, with_examples
from .conversations import MessagePayload
from .entries import ContentType, EntryPayload

Question: TypeAlias = Annotated[str, Field(max_length=100_000, description="A question, or some words.")]
AnyAgent: TypeAlias = Annotated[OwnerId, Field(description="Else all agents of the user.")] | None
HitLimit: TypeAlias = Annotated[int, Field(ge=1, description="How many hits at most.")]

_FOUND = {**examples.ENTRY, "evidence": []}


class OwnedQuestion(RequestBody):
    """A question about one agent and one user, or about all agents of a user."""

    query: Question
    agent_id: AnyAgent = None
    user_id: OwnerId


class _Search(OwnedQuestion):
    """A question to what is stored."""

    limit: HitLimit | None = None
    since: Bound | None = None
    until: Bound | None = None
    explain: bool = Field(default=False, description="Tell the parts of each score.")


class MemorySearchRequest(_Search):
    """A question to what is known."""

    model_config = with_examples(
        {"query": "Does he play music?", "agent_id": examples.AGENT, "user_id": examples.OTHER_USER}
    )

    content_type: ContentType | None = None
    as_of: Annotated[Time, Field(description="Search what was known at this time.")] | None = None


class ConversationSearchRequest(_Search):
    """A question to what was said."""

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
    agent_id: str = Field(description="The agent that knows it, or that was spoken to.")
    score: float
    parts: dict[str, float] | None = Field(
        default=None, description="What the score is made of; only with `explain`."
    )


class EntryHit(_Hit):
    """An entry that was found."""

    entry: EntryPayload


class MessageHit(_Hit):
    """A message that was found."""

    message: MessagePayload
    conversation_id: str
    session_id: str


class _Found(ResponseBody):
    warnings: list[str] = Field(description="What kept the search from being as good as it could be.")


class MemorySearchResponse(_Found):
    """Entries, the best first."""

    model_config = with_examples(
        {"items": [{"entry": _FOUND, "agent_id": examples.AGENT, "score": 0.71}], "warnings": []}
    )

    items: list[EntryHit]


class ConversationSearchResponse(_Found):
    """Messages, the best first."""

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


class RecallRequest(OwnedQuestion):
    """A question, to be answered by a block of text for a prompt."""

    model_config = with_examples(
        {
            "query": "What should I cook?",
            "agent_id": examples.AGENT,
            "user_id": examples.OTHER_USER,
            "budget": 500,
        }
    )

    budget: int = Field(default=1000, ge=1, le=1_000_000, description="How many tokens at most.")
    explain: bool = Field(default=False, description="Tell the parts of each score.")


class RecallResponse(_Found):
    """What is remembered, as a text that marks it as data; empty where nothing is found."""

    model_config = with_examples({"text": "", "entries": [], "turns": [], "warnings": []})

    text: str
    entries: list[EntryHit]
    turns: list[MessageHit]
