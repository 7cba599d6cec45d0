"""Users: their list, and the export of their data."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from . import examples
from .base import NextCursor, OwnerId, QueryParameters, ResponseBody, Timestamp, with_examples

ExportFormat: TypeAlias = Literal["json", "jsonl"]


class UserQuery(QueryParameters):
    """The user, with all agents or with one."""

    user_id: Annotated[OwnerId, Field(examples=[examples.USER])]
    agent_id: OwnerId | None = None


class VacuumQuery(QueryParameters):
    """How thoroughly the files are rewritten."""

    full: bool = Field(
        default=False, description="On PostgreSQL, also rewrite the tables, which locks them meanwhile."
    )


class UserOutline(ResponseBody):
    """A user with stored data."""

    user_id: str
    memory_count: int = Field(description="The number of memories: one per agent.")
    created_at: Timestamp = Field(description="When the first memory was created.")
    updated_at: Timestamp = Field(description="When a memory last changed.")
    position: str = Field(description="The position in the list.")


class UserPage(ResponseBody):
    """Users, each once, in a stable order."""

    model_config = with_examples(
        {
            "items": [
                {
                    "user_id": examples.USER,
                    "memory_count": 1,
                    "created_at": examples.TIME,
                    "updated_at": examples.TIME,
                    "position": "0f3a…",
                }
            ],
            "next_cursor": None,
        }
    )

    items: list[UserOutline]
    next_cursor: NextCursor


class ExportQuery(UserQuery):
    """The user whose data is exported, and the format."""

    format: ExportFormat | None = Field(
        default=None, description="If absent, the `Accept` header decides: `application/jsonl`, or JSON."
    )


class UserExport(ResponseBody):
    """Everything stored about a user."""

    model_config = with_examples(
        {
            "format": "recollect.user/2",
            "user_id": examples.USER,
            "agent_id": None,
            "memories": [],
            "entries": [],
            "conversations": [],
            "runs": [],
            "sessions": [],
            "events": [],
            "summaries": [],
            "store_items": [],
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
    store_items: list[dict[str, Any]] = Field(description="Items in the store of LangGraph.")
