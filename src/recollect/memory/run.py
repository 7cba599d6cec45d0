"""Runs of the pipeline, as they are told."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal

from ..items import ModelUsage
from ..models.values import MOST_TOKENS
from ..sql.columns import ColumnTime, text_from_column, time_to_column
from ..sql.scripts import Row
from .times import format_time

RunStatus = Literal["pending", "running", "done", "failed"]


@dataclass(frozen=True)
class RunStage:
    """A stage that is finished."""

    stage: str
    model: str
    finished_at: datetime
    prompt_tokens: int
    completion_tokens: int
    left_out: int = 0
    """How many sentences or messages it did not read whole, for there were too many."""


@dataclass(frozen=True)
class RunFailure:
    """An attempt that came to nothing, and what the model said."""

    attempt: int
    stage: str
    failed_at: datetime
    error: str
    raw_response: str = field(repr=False)
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class Run:
    """What is learned, or to be learned, from some messages of a conversation."""

    run_id: str
    memory_id: str
    conversation_id: str
    first_index: int
    last_index: int
    status: RunStatus
    attempts: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    model: str | None
    stages: tuple[RunStage, ...] = ()
    failures: tuple[RunFailure, ...] = ()

    @property
    def left_out(self) -> int:
        """How many sentences or messages were not read whole; for a run that is done, `error` says so too."""
        return max((stage.left_out for stage in self.stages), default=0)

    @property
    def position(self) -> str:
        """Where it stands among others, for the page after it."""
        return f"{time_to_column(self.created_at)}/{self.run_id}"

    def to_dict(self) -> dict[str, Any]:
        """The run as JSON tells it."""
        told: dict[str, Any] = _told(asdict(self))
        return {**told, "left_out": self.left_out}


@dataclass(frozen=True)
class Coverage:
    """How many conversations are remembered, how many are yet to be, and how many could not be."""

    remembered: int = 0
    """Those that were read whole."""
    pending: int = 0
    failed: int = 0
    partial: int = 0
    """Those that were learned from, but not read whole."""

    @property
    def share(self) -> float:
        """The share of conversations that are remembered; 1 if there are none."""
        total = self.remembered + self.pending + self.failed + self.partial
        return self.remembered / total if total else 1.0


def _told(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, dict):
        return {name: _told(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_told(each) for each in value]
    return value


SpentBy = Literal["model", "agent"]


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
