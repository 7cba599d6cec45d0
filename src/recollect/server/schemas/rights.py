"""What a user may ask for, and what an operator may look up."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from . import examples
from .base import Answer, Filters, NextCursor, OwnerId, Paged, TimeTold, exampled

ExportFormat: TypeAlias = Literal["json", "jsonl"]


class UserQuery(Filters):
    """Which user it is, with all agents or with one."""

    user_id: Annotated[OwnerId, Field(examples=[examples.USER])]
    agent_id: OwnerId | None = None


class UserListQuery(Paged):
    """Which users are listed."""


class UserOutline(Answer):
    """A user of whom something is stored."""

    user_id: str
    memory_count: int = Field(description="Memories of the user: one for each agent.")
    created_at: TimeTold = Field(description="When the first memory was made.")
    updated_at: TimeTold = Field(description="When a memory last changed.")


class UserPage(Answer):
    """Users, each once, in an order that stays the same."""

    model_config = exampled(
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


class UserExport(Answer):
    """Everything about a user."""

    model_config = exampled(
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


class AuditQuery(Paged):
    """Which entries of the audit log are listed."""


class AuditTold(Answer):
    """Who did what, and when. Never contents."""

    entry_id: str
    at: TimeTold
    key_id: str | None
    action: str
    target: str | None = Field(description="The ids of what it was about.")
    status: int
    request_id: str | None


class AuditPage(Answer):
    """The audit log, the newest first."""

    model_config = exampled(
        {
            "items": [
                {
                    "entry_id": examples.ENTRY_ID,
                    "at": examples.TIME,
                    "key_id": examples.KEY_ID,
                    "action": "conversations.create",
                    "target": examples.CONVERSATION_ID,
                    "status": 201,
                    "request_id": "01K9XQ4D7B",
                }
            ],
            "next_cursor": None,
        }
    )

    items: list[AuditTold]
    next_cursor: NextCursor


class LimitsTold(Answer):
    """What the tenant may use; null is without limit."""

    requests_per_minute: int | None
    tokens_per_day: int | None
    retention_days: int | None


class Whoami(Answer):
    """Who calls, as the service knows them."""

    model_config = exampled(
        {
            "tenant": "default",
            "scope": "admin",
            "key_id": None,
            "limits": {"requests_per_minute": None, "tokens_per_day": None, "retention_days": None},
            "tokens_used_today": 0,
        }
    )

    tenant: str
    scope: Literal["read", "write", "admin"]
    key_id: str | None = Field(description="Null where the service is open.")
    limits: LimitsTold
    tokens_used_today: int
