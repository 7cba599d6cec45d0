"""The block of memories for a prompt, as a value: its lines, and its text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, TypeAlias

from ..items import Tokenizer
from ..strategies.summaries import ConversationSummary
from ..strategies.summaries.injection import DEFAULT_TOKEN_BUDGET, MemoryBlock, render_memory
from .times import format_time

LineKind: TypeAlias = Literal["fact", "quote", "wish"]
Reason: TypeAlias = Literal["relevant", "earlier", "doubtful", "standing"]
"""Why a line is there: it is relevant, it held earlier, it may not hold any more, or it always counts."""


MessageKey: TypeAlias = tuple[str, str]
"""The id of a conversation, and that of a message in it."""


@dataclass(frozen=True)
class Line:
    """A line of a block: a fact that was learned, a quote of a message, or a wish of the user."""

    kind: LineKind
    id: str
    """The id of the entry or of the message."""
    text: str = field(repr=False)
    time: datetime
    """When it was said, or learned if that is not known."""
    score: float
    """The chance that it is relevant, from 0 to 1."""
    reason: Reason = "relevant"
    conversation_id: str | None = None
    """The conversation of a quoted message."""
    messages: tuple[MessageKey, ...] = ()
    """The messages that it shows or rests on."""
    position: int = 0
    """The position of a quoted message in its conversation."""

    def to_dict(self) -> dict[str, Any]:
        """The line as a JSON object."""
        messages = [list(each) for each in self.messages]
        return {**vars(self), "time": format_time(self.time), "messages": messages}


@dataclass(frozen=True)
class Block:
    """What is remembered about a question, for a prompt, as of a time."""

    lines: tuple[Line, ...] = ()
    now: datetime | None = None

    @property
    def facts(self) -> tuple[Line, ...]:
        """The lines with entries."""
        return tuple(line for line in self.lines if line.kind == "fact")

    @property
    def quotes(self) -> tuple[Line, ...]:
        """The lines with messages."""
        return tuple(line for line in self.lines if line.kind == "quote")

    @property
    def wishes(self) -> tuple[Line, ...]:
        """The lines with standing wishes of the user, which may be there whatever the question is."""
        return tuple(line for line in self.lines if line.kind == "wish")

    def without(self, is_left_out: Callable[[Line], bool]) -> "Block":
        """The block without some lines."""
        return replace(self, lines=tuple(line for line in self.lines if not is_left_out(line)))

    def render(
        self,
        *,
        summary: str | ConversationSummary | None = None,
        changes: Sequence[str] = (),
        budget: int = DEFAULT_TOKEN_BUDGET,
        tokenizer: Tokenizer | None = None,
    ) -> MemoryBlock:
        """The text of the block, after a summary of the conversation and changes, if they are given."""
        return render_memory(
            summary,
            [line.text for line in self.lines if line.kind != "wish"],
            wishes=[line.text for line in self.wishes],
            changes=changes,
            now=self.now,
            token_budget=budget,
            tokenizer=tokenizer,
        )
