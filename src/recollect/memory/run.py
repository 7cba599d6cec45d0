"""Runs of the learning pipeline, coverage, and spent tokens."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal

from ..items import ModelUsage
from ..models.values import MOST_TOKENS
from ..sql.columns import ColumnTime, text_from_column, time_to_column
from ..sql.scripts import Row
from .times import format_time

RunStatus = Literal["pending", "running", "done", "failed"]
RunKind = Literal["learning", "mind"]


@dataclass(frozen=True)
class RunStage:
    """A finished stage."""

    stage: str
    model: str
    finished_at: datetime
    prompt_tokens: int
    completion_tokens: int
    left_out: int = 0
    """How many sentences or messages it did not read completely, because there were too many."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many candidates did not become entries, by the reason."""
    masked: Mapping[str, int] = field(default_factory=dict)
    """How many secrets were masked in candidates, by their kind."""


@dataclass(frozen=True)
class RunFailure:
    """A failed attempt, with the response of the model."""

    attempt: int
    stage: str
    failed_at: datetime
    error: str
    raw_response: str = field(repr=False)
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class Run:
    """One pass of the learning pipeline over some messages of a conversation."""

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
    agent_id: str = ""
    user_id: str = ""
    title: str = field(default="", repr=False)
    """The beginning of the first message that it reads, of the user if there is one."""
    kind: RunKind = "learning"
    """`learning` from messages, or an inference about the `mind` from entries."""
    learned: int = 0
    """How many entries it has added. Later runs may have superseded some of them."""

    @property
    def left_out(self) -> int:
        """How many sentences or messages were not read completely. The `error` of a done run says so too."""
        return max((stage.left_out for stage in self.stages), default=0)

    @property
    def dropped(self) -> dict[str, int]:
        """How many candidates did not become entries, by the reason. Contents are not named."""
        return _sum(stage.dropped for stage in self.stages)

    @property
    def masked(self) -> dict[str, int]:
        """How many secrets were masked in candidates, by their kind."""
        return _sum(stage.masked for stage in self.stages)

    @property
    def position(self) -> str:
        """The position in the list of runs, for the page after it."""
        return f"{time_to_column(self.created_at)}/{self.run_id}"

    def to_dict(self) -> dict[str, Any]:
        """The run as a JSON object."""
        fields: dict[str, Any] = _to_json(asdict(self))
        return {**fields, "left_out": self.left_out, "dropped": self.dropped, "masked": self.masked}


@dataclass(frozen=True)
class Coverage:
    """The number of conversations by the state of their runs."""

    remembered: int = 0
    """All runs are done, and read everything."""
    pending: int = 0
    failed: int = 0
    partial: int = 0
    """All runs are done, but some did not read everything."""

    @property
    def share(self) -> float:
        """The share of conversations that are remembered; 1 if there are none."""
        total = self.remembered + self.pending + self.failed + self.partial
        return self.remembered / total if total else 1.0


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, dict):
        return {name: _to_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(each) for each in value]
    return value


SpentBy = Literal["model", "agent"]


def sum_of_tokens(column: str) -> str:
    """The SQL that sums a column of tokens. An invalid count must not spoil the sum of a day."""
    return f"sum(CASE WHEN {column} > {MOST_TOKENS} THEN {MOST_TOKENS} ELSE {column} END)"


@dataclass(frozen=True)
class Spent:
    """The usage of a model, or of all models for an agent, on a day in UTC."""

    day: str
    name: str
    """The name of the model or the agent."""
    usage: ModelUsage


@dataclass(frozen=True)
class Days:
    """Whole days in UTC, from the first to the last, both included."""

    first: date
    last: date

    @property
    def bounds(self) -> tuple[ColumnTime, ColumnTime]:
        """The start of the first day and of the day after the last, as column values."""
        return _start_of(self.first), _start_of(self.last + timedelta(days=1))


def _start_of(day: date) -> ColumnTime:
    return time_to_column(datetime.combine(day, time(), UTC))


def spent_from(rows: Sequence[Row]) -> list[Spent]:
    """Decode rows of a day, a name, and the numbers of requests, input tokens and output tokens."""
    return [Spent(day, text_from_column(name), ModelUsage(*map(int, usage))) for day, name, *usage in rows]
