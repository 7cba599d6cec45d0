"""Entries: one thing each that is known, with its evidence."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from . import examples
from .base import Answer, Asked, Date, Metadata, NextCursor, Paged, Text, Time, TimeTold, exampled

ContentType: TypeAlias = Literal["profile", "event", "mind"]
Confidence: TypeAlias = Annotated[float, Field(ge=0, le=1)]


class EvidenceTold(Answer):
    """A message that an entry was learned from."""

    conversation_id: str
    message_id: str
    run_id: str | None


class EntryTold(Answer):
    """One thing that is known, or was."""

    model_config = exampled(examples.ENTRY)

    content_id: str
    memory_id: str
    content_type: ContentType
    content_text: str
    content_data: dict[str, Any]
    metadata: dict[str, Any]
    confidence: float
    learned_at: TimeTold
    said_at: TimeTold | None
    valid_from: str | None
    valid_to: str | None
    retired_at: TimeTold | None = Field(description="Since when it is no longer told.")
    superseded_by: str | None
    supersedes: list[str]
    evidence: list[EvidenceTold]


class EntryQuery(Paged):
    """Which entries are listed."""

    type: ContentType | None = None
    as_of: Annotated[Time, Field(description="As they were known at this time.")] | None = None
    include_retired: bool = Field(default=False, description="Also those that are no longer told.")


class EntryPage(Answer):
    """Entries in the order in which they were learned."""

    model_config = exampled({"items": [examples.ENTRY], "next_cursor": None})

    items: list[EntryTold]
    next_cursor: NextCursor


class NewEntry(Asked):
    """What a person knows, without any evidence but their word."""

    model_config = exampled(
        {
            "content_type": "profile",
            "content_text": "The user is allergic to peanuts.",
            "valid_from": "2024-05",
        }
    )

    content_type: ContentType
    content_text: Text
    valid_from: Date | None = None
    valid_to: Date | None = None
    confidence: Confidence = 1.0
    metadata: Metadata | None = None


class EntryChange(Asked):
    """An entry, put right: a new one takes its place, and the old one stays in the history."""

    model_config = exampled({"content_text": "The user is allergic to peanuts and cashews."})

    content_text: Text
    metadata: Metadata | None = Field(default=None, description="Else it keeps that of the old one.")


class EntryEdited(EntryTold):
    """The entry that took the place of the old one."""

    model_config = exampled(
        {
            **examples.ENTRY,
            "content_id": examples.EDITED_CONTENT_ID,
            "content_text": "The user is allergic to peanuts and cashews.",
            "supersedes": [examples.CONTENT_ID],
        }
    )


class EntryDeleted(Answer):
    """How many entries went: the entry, with all that it had superseded."""

    model_config = exampled({"deleted": 2})

    deleted: int


class History(Answer):
    """An entry with what it has superseded, the oldest first."""

    model_config = exampled({"items": [examples.ENTRY]})

    items: list[EntryTold]


class QuoteTold(Answer):
    """A message that says so, word for word."""

    conversation_id: str
    message_id: str
    role: str
    name: str | None
    content: str
    created_at: TimeTold
    run_id: str | None


class OriginTold(Answer):
    """The run that wrote an entry."""

    run_id: str
    model: str | None
    conversation_id: str
    finished_at: TimeTold | None


class EditTold(Answer):
    """The edit by which an entry got its text."""

    edited_by: str | None = Field(description="The API key that made it; null where that was not recorded.")
    edited_at: TimeTold
    content_id: str = Field(description="The entry that was edited, with the messages it was learned from.")


class WhyTold(Answer):
    """Why something is known."""

    model_config = exampled(
        {
            "entry": examples.ENTRY,
            "evidence": [],
            "origin": None,
            "edit": None,
            "supersedes": [],
            "superseded_by": [],
        }
    )

    entry: EntryTold
    evidence: list[QuoteTold] = Field(description="What was said; erased messages are not there.")
    origin: OriginTold | None = Field(description="Null where a person wrote the entry.")
    edit: EditTold | None = Field(description="The edit that wrote these words; null where nobody edited it.")
    supersedes: list[EntryTold]
    superseded_by: list[EntryTold]
