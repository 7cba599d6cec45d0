"""The interface of a summarizer: its request and its result."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Protocol

from ...items import Item, ModelUsage


@dataclass(frozen=True)
class SummaryRequest:
    """Turns to summarize, together with the summary of the turns before them."""

    items: list[Item]
    """Whole turns, oldest first."""
    previous: str | None
    """The previous summary, which the new one replaces."""
    max_tokens: int
    """The length limit of the summary, as `estimate_tokens` counts."""
    session_id: str

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, and it is {self.max_tokens}")


@dataclass(frozen=True)
class Summary:
    """A summary, with the model that made it and the tokens it used."""

    text: str
    model: str | None = None
    usage: ModelUsage | None = None


class Summarizer(Protocol):
    """Any async callable that makes a summary, such as a function."""

    def __call__(self, request: SummaryRequest, /) -> Awaitable[str | Summary]:
        """Summarize the turns of the request. Return a `Summary` or a string."""
        ...
