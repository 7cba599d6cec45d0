"""The steps of a transcript as records of an import: a session with all items, and a conversation.

The conversation has what the user and the agent said. Output of tools, files and the work of subagents are in
sessions only: nothing is learned from them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..moving.kinds import ReadOptions
from ..moving.records import Record, Skipped, stable_id
from .masking import mask_item, mask_text
from .projects import agent_of
from .transcript import About, Step

_ITEMS = 400  # of a record
_BYTES = 1_000_000  # of the texts of a record, about
_TITLE = 100  # characters
OWN_TOOL = "recollect"
"""What the names of our own tools have in them. Their results are memories, and are not stored again."""
_LEFT_OUT = "[memories, left out]"


@dataclass
class _Batch:
    """What the next records hold."""

    items: list[Any] = field(default_factory=list)
    times: list[Any] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[int, dict[str, Any]] = field(default_factory=dict)
    size: int = 0

    @property
    def is_full(self) -> bool:
        return len(self.items) >= _ITEMS or self.size >= _BYTES


class Recorder:
    """Turns the steps of one transcript into records, in constant memory."""

    def __init__(self, about: About, options: ReadOptions, where: str, *, is_side: bool = False) -> None:
        self._about = about
        self._options = options
        self._where = where
        self._is_side = is_side
        self._batch = _Batch()
        self._session_id: str | None = None
        self._has_conversation = False
        self._turn = 0
        self._usage: dict[str, int] = {}
        self._time: str | None = None
        self._own_calls: set[str] = set()

    def record(self, steps: Iterable[Step]) -> Iterator[Record | Skipped]:
        """The records of the steps."""
        for step in steps:
            self._take(step)
            if self._batch.is_full:
                yield from self._flush()
        self._count_turn()
        if self._batch.items or self._session_id:
            yield from self._flush()
        else:
            yield Skipped(self._where, "transcripts without a message", is_lost=False)

    def _take(self, step: Step) -> None:
        batch, time = self._batch, _time_of(step.time)
        self._time = time or self._time
        if step.said and step.said.role == "user":
            self._count_turn()
            self._turn += 1
        for item in step.items:
            masked = self._masked(item)
            batch.items.append(masked)
            batch.times.append(time)
            batch.size += sum(len(each) for each in masked.values() if isinstance(each, str)) + 200
        if step.said and not self._is_side and not self._about.parent:
            said = step.said
            message = {"message_id": said.message_id[:255], "role": said.role, "created_at": time}
            batch.messages.append({**message, "content": mask_text(said.text)})
            batch.size += len(said.text) + 200
        for name, count in (step.usage or {}).items():
            self._usage[name] = self._usage.get(name, 0) + count

    def _masked(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """An item without secrets; the result of one of our own tools without its memories."""
        call_id = str(item.get("call_id"))
        if item.get("type") == "function_call" and OWN_TOOL in str(item.get("name")):
            self._own_calls.add(call_id)
        if item.get("type") == "function_call_output" and call_id in self._own_calls:
            return {**item, "output": _LEFT_OUT}
        masked: dict[str, Any] = mask_item(dict(item))
        return masked

    def _count_turn(self) -> None:
        """Put the tokens of the turn that ends here into the next record."""
        if self._usage:
            row = {"user_turn_number": self._turn, "created_at": self._time, **self._usage}
            self._batch.usage[self._turn] = row
            self._usage = {}

    def _flush(self) -> Iterator[Record]:
        batch, self._batch = self._batch, _Batch()
        if self._session_id is None:
            self._session_id = self._id()
            yield Record("sessions", self._heading(batch), self._where, 500)
        data = {"items": batch.items, "times": batch.times, "usage": list(batch.usage.values())}
        yield Record("items", {"session_id": self._session_id, **data}, self._where, batch.size)
        if batch.messages:
            yield self._said(batch)

    def _id(self) -> str:
        about = self._about
        parts = [self._options.tenant, self._options.user_id, about.program, about.session_id or self._where]
        return stable_id(*parts, *(["subagents"] if self._is_side else []))

    def _heading(self, batch: _Batch) -> dict[str, Any]:
        first = next((each["content"] for each in batch.messages if each["role"] == "user"), None)
        parent = self._about.session_id if self._is_side else self._about.parent
        title = f"subagent of {parent}" if parent else " ".join(first.split())[:_TITLE] if first else None
        return {
            "session_id": self._session_id,
            "created_at": next(filter(None, batch.times), None),
            "user_id": self._options.user_id,
            "agent_id": self._agent_id,
            "title": title,
            "data": {**self._origin(), **({"parent": parent} if parent else {})},
        }

    def _said(self, batch: _Batch) -> Record:
        """The messages: with their conversation, or as further ones of it."""
        shared = {"conversation_id": self._session_id, "messages": batch.messages}
        if self._has_conversation:
            return Record("messages", shared, self._where, 500)
        self._has_conversation = True
        owner = {"user_id": self._options.user_id, "agent_id": self._agent_id, "metadata": self._origin()}
        times = {"session_id": self._session_id, "created_at": batch.messages[0]["created_at"]}
        return Record("conversations", {**shared, **owner, **times}, self._where, 500)

    @property
    def _agent_id(self) -> str:
        return self._options.agent_id or agent_of(self._about.cwd, self._about.remote)

    def _origin(self) -> dict[str, Any]:
        about = self._about
        origin = {
            "source": about.program,
            "source_id": about.session_id,
            "cwd": about.cwd,
            "branch": about.branch,
            "version": about.version,
            "models": ", ".join(about.models),
        }
        return {name: value[:500] for name, value in origin.items() if value}


def _time_of(given: Any) -> str | None:
    """A time with a zone as it stands; `None` for another, which is then that of the session."""
    try:
        found = datetime.fromisoformat(given)
    except (TypeError, ValueError):
        return None
    return None if found.tzinfo is None else str(given)
