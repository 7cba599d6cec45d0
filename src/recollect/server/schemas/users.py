"""What a user may ask for, and what an operator may look up."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from . import examples
from .base import NextCursor, OwnerId, PageQuery, QueryParameters, ResponseBody, Timestamp, with_examples

ExportFormat: TypeAlias = Literal["json", "jsonl"]


class UserQuery(QueryParameters):
    """Which user it is, with all agents or with one."""

    user_id: Annotated[OwnerId, Field(examples=[examples.USER])]
    agent_id: OwnerId | None = None


class UserListQuery(PageQuery):
    """Which users are listed."""


class UserOutline(ResponseBody):
    """A user of whom something is stored."""

    user_id: str
    memory_count: int = Field(description="Memories of the user: one for each agent.")
    created_at: Timestamp = Field(description="When the first memory was made.")
    updated_at: Timestamp = Field(description="When a memory last changed.")


class UserPage(ResponseBody):
    """Users, each once, in an order that stays the same."""

    model_config = with_examples(
        {
            "items": [
                {
                    "user_id": examples.USER,
                    "memory_count": 1,
                    "created_at": examples.TIME,
                    "updated_at": examples.TIME,
                }
            ],
            "next_cursor": None,
        }
    )

    items: list[UserOutline]
    next_cursor: NextCursor


class ExportQuery(UserQuery):
    """Whose data is exported, and how it is told."""

    format: ExportFormat | None = Field(
        default=None, description="Else as `Accept` asks for `application/jsonl`, or JSON."
    )


class UserExport(ResponseBody):
    """Everything about a user."""

    model_config = with_examples(
        {
            "format": "recollect.user/1",
            "user_id": examples.USER,
            "agent_id": None,
            "memories": [],
            "entries": [],
            "conversations": [],
            "runs": [],
            "sessions": [],
            "events": [],
            "summaries": [],
        }
    )

    format: str
    user_id: str
    agent_id: str | None
    memories: list[dict[str, Any]]
    entries: list[dict[str, Any]]
    conversations: list[dict[str, Any]]
    runs: list[dict[str, Any]]
    sessions: list[dict[str, Any]]
    events: list[dict[str, Any]]
    summaries: list[dict[str, Any]]
