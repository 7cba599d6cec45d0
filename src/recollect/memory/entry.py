"""Entries: the facts that are remembered about a user, each with its evidence."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args

from ..errors import InvalidValueError
from .lifetime import state_of, trust_in
from .times import format_time, now

ContentType = Literal["profile", "event", "mind", "instruction"]
"""`instruction` is a standing wish of the user for the answers of the agent."""

CONTENT_TYPES: tuple[ContentType, ...] = get_args(ContentType)


EDITED = "edited"
"""The key in an entry's data that marks an entry written by an edit."""
EDITED_BY = "edited_by"
BY_LIBRARY = "library"
"""The editor of an edit through the library that names none."""
"""The key in an entry's data that names the person or API key that edited it."""


def check_type(given: object) -> ContentType:
    """Check the type of an entry."""
    if given not in CONTENT_TYPES:
        raise InvalidValueError(f"content_type must be one of {', '.join(CONTENT_TYPES)}")
    return given


@dataclass(frozen=True)
class Evidence:
    """A message that an entry was learned from."""

    conversation_id: str
    message_id: str
    run_id: str | None
    """The run that learned the entry from it; `None` if a person wrote the entry."""


@dataclass(frozen=True)
class Entry:
    """One remembered fact, current or superseded."""

    content_id: str
    memory_id: str
    content_type: ContentType
    text: str = field(repr=False)
    learned_at: datetime
    """Since when it is known: when it was first said, or when a person wrote it."""
    confidence: float = 1.0
    said_at: datetime | None = None
    """When it was last said; `None` if a person wrote it."""
    valid_from: str | None = None
    """The date since when it is true, or on which it happened: a day, a month or a year."""
    valid_to: str | None = None
    """The date on which it stopped being true."""
    retired_at: datetime | None = None
    """When it was superseded or retired. From then on it is not current."""
    superseded_by: str | None = None
    """The entry that replaced it."""
    supersedes: tuple[str, ...] = ()
    """The entries that it replaced."""
    evidence: tuple[Evidence, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The structured part: `date`, `value`, …"""
    slot: str | None = None
    """Its subject, if only one entry about this subject can hold at a time."""
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """A small JSON object of the person or program that wrote it."""
    tags: tuple[str, ...] = field(default=(), repr=False)
    """The tags of the person or program that wrote it."""
    expires_at: datetime | None = None
    """When it stops to hold by itself. From then on it is neither searched nor recalled."""
    last_confirmed_at: datetime | None = None
    """When it was last said again, or confirmed by a person."""
    rejected_at: datetime | None = None
    """When a person rejected it. The same words do not bring it back."""

    @property
    def is_edited(self) -> bool:
        """Whether a person wrote it by editing another entry."""
        return EDITED in self.data

    def to_dict(self) -> dict[str, Any]:
        """The entry as a JSON object, with its `state` and the `trust` in it as of now."""
        at = now()
        return {
            "content_id": self.content_id,
            "memory_id": self.memory_id,
            "content_type": self.content_type,
            "content_text": self.text,
            "content_data": dict(self.data),
            "metadata": dict(self.metadata),
            "tags": list(self.tags),
            "confidence": self.confidence,
            "learned_at": format_time(self.learned_at),
            "said_at": self.said_at and format_time(self.said_at),
            "valid_from": self.valid_from,
            "valid_to": self.valid_to,
            "retired_at": self.retired_at and format_time(self.retired_at),
            "superseded_by": self.superseded_by,
            "supersedes": list(self.supersedes),
            "evidence": [vars(each).copy() for each in self.evidence],
            "expires_at": self.expires_at and format_time(self.expires_at),
            "last_confirmed_at": self.last_confirmed_at and format_time(self.last_confirmed_at),
            "rejected_at": self.rejected_at and format_time(self.rejected_at),
            "state": state_of(self, at),
            "trust": round(trust_in(self, at), 2),
        }


def by_succession(history: Iterable[Entry]) -> list[Entry]:
    """Entries, the oldest first. Each comes before the one that replaced it, even if clocks were wrong."""
    by_id = {entry.content_id: entry for entry in history}

    def place(entry: Entry) -> tuple[datetime, int]:
        time, successors = entry.learned_at, 0
        later = by_id.get(entry.superseded_by or "")
        while later is not None and successors < len(by_id):
            time, successors = min(time, later.learned_at), successors + 1
            later = by_id.get(later.superseded_by or "")
        return time, -successors

    return sorted(by_id.values(), key=place)
