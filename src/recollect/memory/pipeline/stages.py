"""The three stages of the pipeline: what they are given, what they answer, and who can do them.

1. *modification*: what in these messages is new or changed, as candidates;
2. *update*: for each candidate, whether it is added, takes the place of what is known, or adds nothing;
3. *mind*: what the user seems to think, feel and want.

All of these are values that stand in JSON as they are, for a finished stage is kept and never done again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

from ..conversation import Message
from ..entry import ContentType, Entry

Stage = Literal["modification", "update", "mind"]
STAGES: tuple[Stage, ...] = ("modification", "update", "mind")
MOST_EVIDENCE = 3
"""Messages that an entry cites at most."""

T = TypeVar("T")


@dataclass(frozen=True)
class Excerpt:
    """The messages that a run takes in, with some that were said before them, for what they refer to."""

    agent_id: str
    user_id: str
    messages: tuple[Message, ...] = field(repr=False)
    before: tuple[Message, ...] = field(default=(), repr=False)

    def is_users(self, message: Message) -> bool:
        """Whether the user said it. Only these messages tell facts about the user."""
        return message.is_from(self.user_id)

    def is_others(self, message: Message) -> bool:
        """Whether a tool or another participant said it, who is neither the user nor the assistant."""
        return message.role in ("user", "tool") and not self.is_users(message)

    def role_of(self, message: Message) -> str:
        """The role as a model reads it: `participant` for a user message under another name."""
        return "participant" if message.role == "user" and not self.is_users(message) else message.role


@dataclass(frozen=True)
class Candidate:
    """Something that could be worth knowing."""

    content_type: ContentType
    text: str = field(repr=False)
    evidence: tuple[str, ...]
    """Ids of the messages that say so, the best first, at most `MOST_EVIDENCE`."""
    confidence: float = 1.0
    valid_from: str | None = None
    """Since when, or on which date: `2024-05-07`, `2024-05` or `2024`."""
    valid_to: str | None = None
    slot: str | None = None
    """What it says something about, where but one thing can hold at a time, such as `home` or `job`."""
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Modification:
    """The answer of the first stage."""

    text: str = field(repr=False)
    """What is new, in words."""
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class Decision:
    """What becomes of a candidate."""

    candidate: int
    """Its place among the candidates."""
    action: Literal["add", "supersede", "none"]
    targets: tuple[str, ...] = ()
    """Ids of entries: those whose place it takes, or, with `none`, the one that says so already."""


@dataclass(frozen=True)
class Update:
    """The answer of the second stage. A candidate that no decision names is added."""

    decisions: tuple[Decision, ...]


@dataclass(frozen=True)
class Mind:
    """The answer of the third stage."""

    insights: str = field(repr=False)
    confidence_score: float | None
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class Usage:
    """The tokens of a call of a model."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def to_dict(self) -> dict[str, int]:
        """As `llm_usage` tells it."""
        total = self.prompt_tokens + self.completion_tokens
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": total,
        }


@dataclass(frozen=True)
class Answer(Generic[T]):
    """What a stage came to, and what the model said word for word."""

    value: T
    raw_response: str = field(default="", repr=False)
    usage: Usage = Usage()
    data: Mapping[str, Any] = field(default_factory=dict)
    """How it came about, such as the version of a prompt; kept with the stage."""


class Extractor(Protocol):
    """Whoever does the three stages. It raises `ExtractionError` where there is no answer."""

    model: str
    """What it is, as `llm_model` tells it."""

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        """What is new or changed in the messages; no more than the messages say."""
        ...

    async def update(
        self, excerpt: Excerpt, candidates: Sequence[Candidate], known: Sequence[Entry]
    ) -> Answer[Update]:
        """What becomes of each candidate, given what is known of the same matters."""
        ...

    async def mind(self, excerpt: Excerpt, known: Sequence[Entry]) -> Answer[Mind]:
        """What the user seems to think, feel and want, as candidates of type `mind`."""
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...
