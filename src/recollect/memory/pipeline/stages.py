"""The three stages of the pipeline: their inputs, their results, and the protocol of an extractor.

1. *modification*: finds what is new or changed in the messages, as candidates;
2. *update*: decides for each candidate whether it is added, supersedes known entries, or adds nothing;
3. *mind*: finds what the user seems to think, feel and want.

An extractor that says `infers_after` is asked for the third stage again in a run of its own, as soon as so
many entries are new: it then infers from entries.

After these, a run that has learned something merges it with the known entries (`merging.py`), if there is
anything to merge. That takes no extractor.

An extractor may answer for all three in the first: the candidates then say which entries they replace, and
the result has the mind. The stages stay separate: each is stored and applied by itself.

All values convert to JSON without loss, because a finished stage is stored and never repeated.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

from ..conversation import Message
from ..entry import ContentType, Entry

Stage = Literal["modification", "update", "mind", "consolidation"]
STAGES: tuple[Stage, ...] = ("modification", "update", "mind")
CONSOLIDATION: Stage = "consolidation"
"""The stage that merges entries. Only a run that finds entries to merge has it."""
MOST_EVIDENCE = 3
"""The most messages that an entry cites."""

REFERENCE = "new:"
"""How the reference of a candidate begins; the id of an entry does not."""

T = TypeVar("T")


@dataclass(frozen=True)
class Excerpt:
    """The messages of a run, with some earlier ones that they may refer to."""

    agent_id: str
    user_id: str
    messages: tuple[Message, ...] = field(repr=False)
    before: tuple[Message, ...] = field(default=(), repr=False)
    known: tuple[Entry, ...] = field(default=(), repr=False)
    """Entries about the same matters, for an extractor that says `reads_known`."""
    display_name: str | None = field(default=None, repr=False)
    """The name under which the user speaks in this conversation, if it is another than the id."""

    def is_users(self, message: Message) -> bool:
        """Whether the user said it. Only these messages are evidence of facts about the user."""
        return message.is_from(self.user_id) or (
            self.display_name is not None and message.is_from(self.display_name)
        )

    def unknown_names(self) -> set[str]:
        """The names in the role `user` that are not the user's id: display names, or other people."""
        said = (each for each in (*self.before, *self.messages) if each.role == "user")
        return {str(each.name).casefold() for each in said if not each.is_from(self.user_id)}

    def is_others(self, message: Message) -> bool:
        """Whether a tool or a participant other than the user and the assistant said it."""
        return message.role in ("user", "tool") and not self.is_users(message)

    def role_of(self, message: Message) -> str:
        """The role in the prompt: `participant` for a user message under another name."""
        return "participant" if message.role == "user" and not self.is_users(message) else message.role


def display_name_of(names: Collection[str | None]) -> str | None:
    """The display name of the user, given the names of all messages of a conversation in the role `user`.

    A single name is the user's. Several names are several people, and a message without a name is the user's:
    then only the user's id names the user.
    """
    distinct = {None if name is None else name.casefold() for name in names}
    return distinct.pop() if len(distinct) == 1 else None


@dataclass(frozen=True)
class Candidate:
    """A statement that could become an entry."""

    content_type: ContentType
    text: str = field(repr=False)
    evidence: tuple[str, ...]
    """The ids of the messages that say so, the best first, at most `MOST_EVIDENCE`."""
    confidence: float = 1.0
    valid_from: str | None = None
    """The date since when it holds, or on which it happened: `2024-05-07`, `2024-05` or `2024`."""
    valid_to: str | None = None
    slot: str | None = None
    """The attribute it is about, if that has one value at a time, such as `home` or `job`."""
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)
    quote: str = field(default="", repr=False)
    """The words of a message that it rests on, if a model gave them. They must be in that message."""
    quotes: tuple[str, ...] = field(default=(), repr=False)
    """Further words that it rests on, of the same or other messages. All of them must be there."""
    replaces: tuple[str, ...] = ()
    """The ids of the known entries that it replaces, if the extractor says so by itself."""
    expires_at: str | None = None
    """The time or date until which it holds, such as `2024-05-07`, which is included."""
    reference: str = ""
    """By this a later candidate of the same answer names it in `replaces`."""
    confirms: str = ""
    """The id of the known entry that says the same. The candidate adds evidence to it, and no entry."""
    doubts: str = ""
    """The id of the known entry that it repeats with less confidence, because a message puts it in doubt."""
    is_trusted: bool = False
    """Whether what it replaces is taken as it stands, without a check of the words."""
    rests_on: tuple[str, ...] = ()
    """The ids of the known entries that it is inferred from. Their messages are its evidence."""
    shakes: tuple[str, ...] = ()
    """The ids of the known entries that it makes doubtful, if the extractor says so by itself."""


@dataclass(frozen=True)
class Mind:
    """The result of the third stage."""

    insights: str = field(repr=False)
    confidence_score: float | None
    candidates: tuple[Candidate, ...]
    ended: tuple[str, ...] = ()
    """The ids of inferred entries that nothing supports any more."""


@dataclass(frozen=True)
class Modification:
    """The result of the first stage."""

    text: str = field(repr=False)
    """The news in words."""
    candidates: tuple[Candidate, ...]
    mind: Mind | None = None
    """The result of the third stage, if the same answer has it. Then the extractor is not asked for it."""


@dataclass(frozen=True)
class Decision:
    """What to do with a candidate."""

    candidate: int
    """Its index among the candidates."""
    action: Literal["add", "supersede", "none"]
    targets: tuple[str, ...] = ()
    """The ids of the entries that it supersedes, or, with `none`, of the entry that says so already."""


@dataclass(frozen=True)
class Update:
    """The result of the second stage. A candidate without a decision is added."""

    decisions: tuple[Decision, ...]


@dataclass(frozen=True)
class Usage:
    """The tokens of a model call."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def to_dict(self) -> dict[str, int]:
        """The `llm_usage` of a `pipeline_result`."""
        total = self.prompt_tokens + self.completion_tokens
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": total,
        }


@dataclass(frozen=True)
class Answer(Generic[T]):
    """The result of a stage, with the literal response of the model."""

    value: T
    raw_response: str = field(default="", repr=False)
    usage: Usage = Usage()
    data: Mapping[str, Any] = field(default_factory=dict)
    """Details that are stored with the stage, such as the version of the prompt."""


class Extractor(Protocol):
    """Executes the three stages. A stage without a result raises an `ExtractionError`.

    An extractor with a true attribute `reads_known` gets known entries in the excerpt of the first stage. One
    with a true attribute `asks_no_model` costs little to repeat: the stages of a run are stored together.
    One with a number `infers_after` above 0 infers from entries, in a run of its own, when so many are new.
    """

    model: str
    """Its name, as in `llm_model` of a `pipeline_result`."""

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        """Find what is new or changed in the messages, and no more than they say."""
        ...

    async def update(
        self, excerpt: Excerpt, candidates: Sequence[Candidate], known: Sequence[Entry]
    ) -> Answer[Update]:
        """Decide about each candidate, given the known entries about the same matters."""
        ...

    async def mind(self, excerpt: Excerpt, known: Sequence[Entry]) -> Answer[Mind]:
        """Find what the user seems to think, feel and want, as candidates of type `mind`."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...
