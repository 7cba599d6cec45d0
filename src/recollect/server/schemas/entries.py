"""Entries: one thing each that is known, with its evidence."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from . import examples
from .base import (
    Date,
    Metadata,
    NextCursor,
    PageQuery,
    RequestBody,
    ResponseBody,
    Text,
    Time,
    Timestamp,
    with_examples,
)

ContentType: TypeAlias = Literal["profile", "event", "mind"]
Confidence: TypeAlias = Annotated[float, Field(ge=0, le=1)]


class EvidencePayload(ResponseBody):
    """A message that an entry was learned from."""

    conversation_id: str
    message_id: str
    run_id: str | None


class EntryPayload(ResponseBody):
    """One thing that is known, or was."""

    model_config = with_examples(examples.ENTRY)

    content_id: str
    memory_id: str
    content_type: ContentType
    content_text: str
    content_data: dict[str, Any]
    metadata: dict[str, Any]
    confidence: float
    learned_at: Timestamp
    said_at: Timestamp | None
    valid_from: str | None
    valid_to: str | None
    retired_at: Timestamp | None = Field(description="Since when it is no longer told.")
    superseded_by: str | None
    supersedes: list[str]
    evidence: list[EvidencePayload]


class EntryQuery(PageQuery):
    """Which entries are listed."""

    type: ContentType | None = None
    as_of: Annotated[Time, Field(description="As they were known at this time.")] | None = None
    include_retired: bool = Field(default=False, description="Also those that are no longer told.")


class EntryPage(ResponseBody):
    """Entries in the order in which they were learned."""

    model_config = with_examples({"items": [examples.ENTRY], "next_cursor": None})

    items: list[EntryPayload]
    next_cursor: NextCursor


class NewEntry(RequestBody):
    """What a person knows, without any evidence but their word."""

    model_config = with_examples(
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


class EntryChange(RequestBody):
    """An entry, put right: a new one takes its place, and the old one stays in the history."""

    model_config = with_examples({"content_text": "The user is allergic to peanuts and cashews."})

    content_text: Text
    metadata: Metadata | None = Field(default=None, description="Else it keeps that of the old one.")


class EntryEdited(EntryPayload):
    """The entry that took the place of the old one."""

    model_config = with_examples(
        {
            **examples.ENTRY,
            "content_id": examples.EDITED_CONTENT_ID,
            "content_text": "The user is allergic to peanuts and cashews.",
            "supersedes": [examples.CONTENT_ID],
        }
    )


class EntryDeleted(ResponseBody):
    """How many entries went: the entry, with all that it had superseded."""

    model_config = with_examples({"deleted": 2})

    deleted: int


class History(ResponseBody):
    """An entry with what it has superseded, the oldest first."""

    model_config = with_examples({"items": [examples.ENTRY]})

    items: list[EntryPayload]


class QuotePayload(ResponseBody):
    """A message that says so, word for word."""

    conversation_id: str
    message_id: str
    role: str
    name: str | None
    content: str
    created_at: Timestamp
    run_id: str | None


class OriginPayload(ResponseBody):
    """The run that wrote an entry."""

    run_id: str
    model: str | None
    conversation_id: str
    finished_at: Timestamp | None


class EditPayload(ResponseBody):
    """The edit by which an entry got its text."""

    edited_by: str | None = Field(description="The API key that made it; null where that was not recorded.")
    edited_at: Timestamp
    content_id: str = Field(description="The entry that was edited, with the messages it was learned from.")


class WhyResponse(ResponseBody):
    """Why something is known."""

    model_config = with_examples(
        {
            "entry": examples.ENTRY,
            "evidence": [],
            "origin": None,
            "edit": None,
            "supersedes": [],
            "superseded_by": [],
        }
    )

    entry: EntryPayload
    evidence: list[QuotePayload] = Field(description="What was said; erased messages are not there.")
    origin: OriginPayload | None = Field(description="Null where a person wrote the entry.")
    edit: EditPayload | None = Field(
        description="The edit that wrote these words; null where nobody edited it."
    )
    supersedes: list[EntryPayload]
    superseded_by: list[EntryPayload]
