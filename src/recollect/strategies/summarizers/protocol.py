"""What a summarizer is asked, what it answers, and how it fails."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Protocol

from ...items import Item, ModelUsage


@dataclass(frozen=True)
class SummaryRequest:
    """Turns to be summarized, together with the summary of what came before them."""

    items: list[Item]
    """Whole turns, oldest first."""
    previous: str | None
    """The summary so far, to be extended by these turns."""
    max_tokens: int
    """How long the summary may be, as `estimate_tokens` counts."""
    session_id: str

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, and it is {self.max_tokens}")


@dataclass(frozen=True)
class Summary:
    """A summary, and who made it at what cost."""

    text: str
    model: str | None = None
    usage: ModelUsage | None = None


class Summarizer(Protocol):
    """Any async callable that makes a summary: a function will do."""

    def __call__(self, request: SummaryRequest, /) -> Awaitable[str | Summary]:
        """The summary of what the request holds; a plain text will do."""
        ...
