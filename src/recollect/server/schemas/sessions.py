"""Sessions: the log of items of one conversation with an agent."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from . import examples
from .base import MAX_ITEMS, Key, OwnerId, QueryParameters, RequestBody, ResponseBody, with_examples

SessionId: TypeAlias = Annotated[OwnerId, Field(description="The id of the session; any text.")]

_ITEM = {"role": "user", "content": "I live in Lisbon."}


class SessionQuery(QueryParameters):
    """The session."""

    session_id: Annotated[SessionId, Field(examples=["monday"])]


class ItemsQuery(SessionQuery):
    """The session, and how much of it."""

    limit: Annotated[int, Field(ge=0, description="Only this many of the newest items.")] | None = None
    format: Literal["json", "jsonl"] = Field("json", description="One object, or a line for each item.")


class SessionItems(ResponseBody):
    """Items of a session, oldest first."""

    model_config = with_examples({"items": [_ITEM]})

    items: list[dict[str, Any]]


class NewItems(RequestBody):
    """A batch of items for a session. All of them are stored, or none."""

    model_config = with_examples({"session_id": "monday", "items": [_ITEM], "user_id": examples.USER})

    session_id: SessionId
    items: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_ITEMS, fail_fast=True)]
    batch_id: (
        Annotated[Key, Field(description="A batch is stored once under its id. Generated if absent.")] | None
    ) = None
    user_id: (
        Annotated[OwnerId, Field(description="The user of a new session, for exports and erasures.")] | None
    ) = None
    agent_id: OwnerId | None = None


class ItemsAdded(ResponseBody):
    """Whether the batch was stored by this request, or by an earlier one with the same `batch_id`."""

    model_config = with_examples({"is_new": True})

    is_new: bool


class PoppedFrom(RequestBody):
    """The session whose newest item is removed."""

    model_config = with_examples({"session_id": "monday"})

    session_id: SessionId


class PoppedItem(ResponseBody):
    """The removed item; null if the session is empty."""

    model_config = with_examples({"item": _ITEM})

    item: dict[str, Any] | None
