"""What models have cost, day by day."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

from ..items import ModelUsage
from ..sql.columns import ColumnTime, text_from_column, time_to_column
from ..sql.scripts import Row

SpentBy = Literal["model", "agent"]

MOST_TOKENS = 2**40
"""Tokens that anything can have cost at once: what is told beyond that is no count."""


def sum_of_tokens(column: str) -> str:
    """The SQL that adds up a column of tokens. A number that is no count must not spoil the sum of a day."""
    return f"sum(CASE WHEN {column} > {MOST_TOKENS} THEN {MOST_TOKENS} ELSE {column} END)"


@dataclass(frozen=True)
class Spent:
    """What a model, or all models for an agent, have cost on a day of UTC."""

    day: str
    name: str
    """Of the model or the agent."""
    usage: ModelUsage


@dataclass(frozen=True)
class Days:
    """Whole days of UTC, the first and the last of which are among them."""

    first: date
    last: date

    @property
    def bounds(self) -> tuple[ColumnTime, ColumnTime]:
        """The first moment and the one after the last, as columns compare them."""
        return _start_of(self.first), _start_of(self.last + timedelta(days=1))


def _start_of(day: date) -> ColumnTime:
    return time_to_column(datetime.combine(day, time(), UTC))


def spent_from(rows: Sequence[Row]) -> list[Spent]:
    """What rows tell: a day, a name, and the numbers of requests and of tokens in and out."""
    return [Spent(day, text_from_column(name), ModelUsage(*map(int, usage))) for day, name, *usage in rows]
