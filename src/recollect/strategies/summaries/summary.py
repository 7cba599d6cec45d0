"""A summary of a conversation, and its database row."""

from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from ...sql.columns import text_from_column, text_to_column, time_from_column, time_to_column
from ...sql.scripts import Row


@dataclass(frozen=True)
class ConversationSummary:
    """A stored summary of a conversation."""

    id: str
    conversation_id: str
    agent: str | None
    text: str = field(repr=False)
    model: str | None
    """The model or summarizer that made it."""
    token_length: int
    covered_position: int | None
    """The position of the last item it covers, in a session with positions."""
    version: int
    """The number of the summary within the conversation, from 1."""
    created_at: datetime
    expires_at: datetime | None


COLUMNS = tuple(column.name for column in fields(ConversationSummary))
_TEXTS = ("agent", "text", "model")
_TIMES = ("created_at", "expires_at")


def to_row(summary: ConversationSummary) -> list[Any]:
    """The values of the columns, in the order of `COLUMNS`."""
    values = vars(summary)
    texts = {name: values[name] and text_to_column(values[name]) for name in _TEXTS}
    times = {name: values[name] and time_to_column(values[name]) for name in _TIMES}
    return [(values | texts | times)[name] for name in COLUMNS]


def summaries_from(rows: list[Row]) -> list[ConversationSummary]:
    """Parse rows to summaries."""
    return [_from_row(dict(zip(COLUMNS, row, strict=True))) for row in rows]


def _from_row(values: dict[str, Any]) -> ConversationSummary:
    texts = {name: values[name] and text_from_column(values[name]) for name in _TEXTS}
    times = {name: values[name] and time_from_column(values[name]) for name in _TIMES}
    return ConversationSummary(**(values | texts | times))
