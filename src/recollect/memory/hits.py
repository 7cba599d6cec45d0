"""The results of searches, with their scores."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .block import Block, Line
from .conversation import Message
from .entry import Entry


@dataclass(frozen=True)
class ConversationsFound:
    """A page of conversations, and the position of the next page."""

    conversations: list[dict[str, Any]]
    """The outline of each conversation, without its messages."""
    position: str | None
    """The `before` of the next page; `None` if there is none. An empty page may have one, too."""


@dataclass(frozen=True)
class MemoryHit:
    """An entry that a search found."""

    entry: Entry
    score: float
    """The chance that it is relevant, from 0 to 1."""
    parts: Mapping[str, float]
    """The parts of the score: `text`, `vector`, `date`, …"""
    agent_id: str = ""
    """The agent of the memory."""
    user_id: str = ""
    """The user of the memory."""

    def to_dict(self) -> dict[str, Any]:
        """The hit as a JSON object."""
        return {
            "entry": self.entry.to_dict(),
            "agent_id": self.agent_id,
            "user_id": self.user_id,
            "score": self.score,
            "parts": dict(self.parts),
        }


@dataclass(frozen=True)
class TurnHit:
    """A message that a search found."""

    message: Message
    conversation_id: str
    session_id: str
    score: float
    """The chance that it is relevant, from 0 to 1."""
    parts: Mapping[str, float]
    """The parts of the score: `text`, `vector`, `neighbour`, `session`, …"""
    agent_id: str = ""
    """The agent of the conversation."""
    passage: str = ""
    """The part of a long message that matches best; all of a short one."""
    user_id: str = ""
    """The user of the conversation."""

    def to_dict(self) -> dict[str, Any]:
        """The hit as a JSON object."""
        return {
            "message": self.message.to_dict(),
            "conversation_id": self.conversation_id,
            "session_id": self.session_id,
            "agent_id": self.agent_id,
            "user_id": self.user_id,
            "passage": self.passage,
            "score": self.score,
            "parts": dict(self.parts),
        }


@dataclass(frozen=True)
class MemorySearch:
    """The result of a search for entries, the best first."""

    hits: tuple[MemoryHit, ...]
    warnings: tuple[str, ...] = ()
    """Why the results may be incomplete or less precise."""
    relevance: float = 0.0
    """The chance that there is anything to say about the question."""


@dataclass(frozen=True)
class TurnSearch:
    """The result of a search for messages, the best first."""

    hits: tuple[TurnHit, ...]
    warnings: tuple[str, ...] = ()
    """Why the results may be incomplete or less precise."""
    relevance: float = 0.0
    """The chance that there is anything to say about the question."""


@dataclass(frozen=True)
class Recalled:
    """The entries and messages about a question, with their text for a prompt."""

    text: str = field(repr=False)
    entries: tuple[MemoryHit, ...]
    """The entries in the text, in its order."""
    turns: tuple[TurnHit, ...]
    """The messages in the text, in its order, each with the passage that is quoted."""
    warnings: tuple[str, ...] = ()
    instructions: tuple[Entry, ...] = ()
    """The standing wishes of the user in the text, the newest first."""
    block: Block = field(default_factory=Block, repr=False)
    """The lines of the text, to render it in another way."""

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines of the text."""
        return self.block.lines

    @property
    def is_found(self) -> bool:
        """Whether anything was found about the question. The text may still have wishes of the user."""
        return bool(self.entries or self.turns)
