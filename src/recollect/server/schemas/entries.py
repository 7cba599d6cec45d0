"""Entries: single remembered facts, with their evidence."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from . import examples
from .base import (
    Date,
    Key,
    Metadata,
    NextCursor,
    OwnerId,
    RequestBody,
    ResponseBody,
    Tags,
    Text,
    Time,
    Timestamp,
    with_examples,
)

ContentType: TypeAlias = Literal["profile", "event", "mind", "instruction"]
EntryState: TypeAlias = Literal["current", "doubtful", "expired", "retired", "rejected"]
Confidence: TypeAlias = Annotated[float, Field(ge=0, le=1)]


class EvidencePayload(ResponseBody):
    """A message that an entry was learned from."""

    conversation_id: str
    message_id: str
    run_id: str | None


class EntryPayload(ResponseBody):
    """One remembered fact, current or retired."""

    model_config = with_examples(examples.ENTRY)

    content_id: str
    memory_id: str
    content_type: ContentType
    content_text: str
    content_data: dict[str, Any]
    metadata: dict[str, Any]
    tags: list[str]
    confidence: float
    learned_at: Timestamp
    said_at: Timestamp | None
    valid_from: str | None
    valid_to: str | None
    retired_at: Timestamp | None = Field(
        description="When it was retired: superseded, or no longer true. Null while it is current."
    )
    superseded_by: str | None
    supersedes: list[str]
    evidence: list[EvidencePayload]
    expires_at: Timestamp | None = Field(description="When it stops to hold by itself.")
    last_confirmed_at: Timestamp | None = Field(description="When it was last said again or confirmed.")
    rejected_at: Timestamp | None = Field(description="When a person rejected it.")
    state: EntryState = Field(description="Only current and doubtful entries are searched and recalled.")
    trust: float = Field(description="The confidence, less the longer it was not said again.")


class ListedEntry(EntryPayload):
    """An entry in the list of a memory."""

    model_config = with_examples({**examples.ENTRY, "position": 1})

    position: int = Field(description="The position in the list. Positions have gaps.")


class EntryPage(ResponseBody):
    """Entries in the order in which they were learned."""

    model_config = with_examples({"items": [{**examples.ENTRY, "position": 1}], "next_cursor": None})

    items: list[ListedEntry]
    next_cursor: NextCursor


class NewEntry(RequestBody):
    """A fact that a person states, without messages as evidence."""

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
    tags: Tags | None = None
    expires_at: Time | None = Field(
        default=None, description="When it stops to hold: a time, or a date, which is included."
    )


class NewOwnedEntry(NewEntry):
    """A fact that a person or a program states about a user."""

    model_config = with_examples(
        {
            "agent_id": examples.AGENT,
            "user_id": examples.USER,
            "content_type": "profile",
            "content_text": "The user is allergic to peanuts.",
            "unless": "known",
        }
    )

    agent_id: OwnerId
    user_id: OwnerId
    content_id: Annotated[Key, Field(description="Generated if absent.")] | None = None
    unless: (
        Annotated[
            Literal["known", "known_or_rejected"],
            Field(
                description="Add nothing if an entry of this type says the same, in these words or in others;"
                " with `known_or_rejected` also if a person has rejected such an entry."
            ),
        ]
        | None
    ) = None


class EntryAdded(ResponseBody):
    """The entry that says it, which is new or was known."""

    model_config = with_examples({"entry": examples.ENTRY, "is_new": True})

    entry: EntryPayload
    is_new: bool


class EntryChange(RequestBody):
    """The new text of an entry. A new entry supersedes the old one, which stays in the history."""

    model_config = with_examples({"content_text": "The user is allergic to peanuts and cashews."})

    content_text: Text
    metadata: Metadata | None = Field(
        default=None, description="If absent, the new entry keeps the old metadata."
    )
    tags: Tags | None = Field(default=None, description="If absent, the new entry keeps the old tags.")
    expires_at: Time | None = Field(
        default=None, description="If absent, the new entry keeps the old expiry; null removes it."
    )


class EntryEdited(EntryPayload):
    """The entry that supersedes the edited one."""

    model_config = with_examples(
        {
            **examples.ENTRY,
            "content_id": examples.EDITED_CONTENT_ID,
            "content_text": "The user is allergic to peanuts and cashews.",
            "supersedes": [examples.CONTENT_ID],
        }
    )


class EntryDeleted(ResponseBody):
    """The number of deleted entries: the entry, and all that it had superseded."""

    model_config = with_examples({"deleted": 2})

    deleted: int


class History(ResponseBody):
    """An entry and all entries that it has superseded, oldest first."""

    model_config = with_examples({"items": [examples.ENTRY]})

    items: list[EntryPayload]


class QuotePayload(ResponseBody):
    """A message that an entry rests on, quoted."""

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
    """The edit that gave an entry its text."""

    edited_by: str | None = Field(
        description="The id of the API key that made the edit, `no key` if the service requires none, or the"
        " name that a program gave; null if not recorded."
    )
    edited_at: Timestamp
    content_id: str = Field(description="The edited entry, which has the original evidence.")


class WhyResponse(ResponseBody):
    """Why an entry is known: its evidence and origin."""

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
    evidence: list[QuotePayload] = Field(description="The quoted messages, without erased ones.")
    origin: OriginPayload | None = Field(description="Null if a person wrote the entry.")
    edit: EditPayload | None = Field(description="The edit that wrote the text; null if there was none.")
    supersedes: list[EntryPayload]
    superseded_by: list[EntryPayload]
