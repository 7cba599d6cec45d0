"""The record of a chat turn: ids, counts and times, and no contents."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from ....items import ModelUsage
from ....memory.prompting import PageMark, PromptParts
from ....memory.times import format_time
from ....sql.columns import (
    ColumnJSON,
    json_from_column,
    json_to_column,
    text_from_column,
    text_to_column,
    time_from_column,
    time_to_column,
)
from ....sql.scripts import Row
from ...values import ChatReply, ToolCall
from .schema import CHAT_TURNS

Status = Literal["running", "done", "failed"]

_TEXTS = ("agent", "model")
_TIMES = ("started_at", "finished_at")
_MAIN = "main"
_POSITIONS = ("answer_index", "question_index")


@dataclass(frozen=True)
class TurnRecord:
    """A row of the table of turns."""

    turn_id: str
    tenant: str
    conversation_id: str
    agent: str
    status: Status
    error_code: str | None
    model: str
    started_at: datetime
    finished_at: datetime | None
    user_message_id: str
    assistant_message_id: str
    usage: ModelUsage = field(default_factory=ModelUsage)
    tool_calls: tuple[ToolCall, ...] = ()
    memories_used: int = 0
    session_turn: tuple[str, int] = (_MAIN, 0)
    """The branch of the session, and the number of the user turn in it."""
    answer_index: int | None = None
    """The index of the answer in the conversation."""
    question_index: int = 0
    """The index of the user's message in the conversation."""
    cached_tokens: int = 0
    """The input tokens of the newest attempt that the provider had cached."""
    memory: dict[str, Any] | None = None
    """What the prompt had from memory, without texts: see `memory_of`. `None` if nothing was injected."""

    @property
    def branch(self) -> str:
        """The branch of the session."""
        return self.session_turn[0]

    def to_dict(self) -> dict[str, Any]:
        """The turn as a JSON object."""
        branch, number = self.session_turn
        return {
            "turn_id": self.turn_id,
            "status": self.status,
            "error_code": self.error_code,
            "agent": self.agent,
            "agent_id": self.agent,
            "model": self.model,
            "started_at": format_time(self.started_at),
            "finished_at": self.finished_at and format_time(self.finished_at),
            "requests": self.usage.requests,
            "input_tokens": self.usage.input_tokens,
            "output_tokens": self.usage.output_tokens,
            "total_tokens": self.usage.total_tokens,
            "cached_tokens": self.cached_tokens,
            "memory": self.memory,
            "user_message_id": self.user_message_id,
            "assistant_message_id": self.assistant_message_id if self.status == "done" else None,
            "branch": branch,
            "turn": number,
        }


def as_failed(record: TurnRecord, error_code: str, now: datetime) -> TurnRecord:
    """The turn, ended without an answer."""
    return replace(record, status="failed", error_code=error_code, finished_at=now)


def reply_from(record: TurnRecord, text: str) -> ChatReply:
    """The reply of a turn that is done."""
    return ChatReply(
        record.turn_id,
        record.conversation_id,
        record.agent,
        record.model,
        text,
        record.user_message_id,
        record.assistant_message_id,
        record.usage,
        record.tool_calls,
        record.memories_used,
    )


def to_columns(record: TurnRecord) -> dict[str, Any]:
    """The columns of a turn by name."""
    values: dict[str, Any] = {name: getattr(record, name, None) for name in CHAT_TURNS.column_names}
    values |= {name: text_to_column(values[name]) for name in _TEXTS}
    values |= {name: values[name] and time_to_column(values[name]) for name in _TIMES}
    values |= {name: getattr(record.usage, name) for name in ("requests", "input_tokens", "output_tokens")}
    return values | {"details": _details(record)}


def _details(record: TurnRecord) -> ColumnJSON:
    details = {
        "tool_calls": [[call.call_id, call.name] for call in record.tool_calls],
        "memories_used": record.memories_used,
        "session_turn": record.session_turn,
        **{name: getattr(record, name) for name in _POSITIONS},
        "cached_tokens": record.cached_tokens,
        "memory": record.memory,
    }
    return json_to_column(details)


def memory_of(remembered: PromptParts) -> dict[str, Any] | None:
    """What a turn had from memory, as ids, scores and times. `None` if nothing was injected."""
    if remembered.fixed_at is None:
        return None
    lines = [
        {
            "kind": line.kind,
            "id": line.id,
            "conversation_id": line.conversation_id,
            "score": line.score,
            "reason": line.reason,
        }
        for line in remembered.lines
    ]
    return {
        "page_version": remembered.page_version,
        "page_fixed_at": format_time(remembered.fixed_at),
        "tail": lines,
        "changed": list(remembered.changed),
        "seconds": round(remembered.seconds, 6),
    }


def page_mark_from(rows: Sequence[Row]) -> PageMark | None:
    """The page that a conversation has, from its newest turns."""
    for started_at, details in rows:
        memory = json_from_column(details).get("memory")
        if memory is not None:
            fixed_at = datetime.fromisoformat(memory["page_fixed_at"])
            return PageMark(memory["page_version"], fixed_at, time_from_column(started_at))
    return None


def records_from(rows: Sequence[Row]) -> list[TurnRecord]:
    """The turns of rows that have all columns of the table."""
    return [_record(dict(zip(CHAT_TURNS.column_names, row, strict=True))) for row in rows]


def _record(values: dict[str, Any]) -> TurnRecord:
    details = json_from_column(values.pop("details"))
    usage = ModelUsage(values.pop("requests"), values.pop("input_tokens"), values.pop("output_tokens"))
    values |= {name: text_from_column(values[name]) for name in _TEXTS}
    values |= {name: values[name] and time_from_column(values[name]) for name in _TIMES}
    return TurnRecord(
        **values,
        usage=usage,
        tool_calls=tuple(ToolCall(*call) for call in details["tool_calls"]),
        memories_used=details["memories_used"],
        session_turn=tuple(details["session_turn"]),
        **{name: details[name] for name in _POSITIONS},
        cached_tokens=details.get("cached_tokens", 0),
        memory=details.get("memory"),
    )
