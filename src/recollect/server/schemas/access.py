"""What models have cost, day by day."""

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field

from ...memory.times import read_date
from . import examples
from .base import NextCursor, PageQuery, QueryParameters, ResponseBody, Timestamp, with_examples
from .conversation_details import UsageTotals


class AuditQuery(PageQuery):
    """Which entries of the audit log are listed."""


class AuditEntryPayload(ResponseBody):
    """Who did what, and when. Never contents."""

    entry_id: str
    at: Timestamp
    key_id: str | None
    action: str
    target: str | None = Field(description="The ids of what it was about.")
    status: int
    request_id: str | None


class AuditPage(ResponseBody):
    """The audit log, the newest first."""

    model_config = with_examples(
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

    items: list[AuditEntryPayload]
    next_cursor: NextCursor


class TenantLimits(ResponseBody):
    """What the tenant may use; null is without limit."""

    requests_per_minute: int | None
    tokens_per_day: int | None
    retention_days: int | None


class Whoami(ResponseBody):
    """Who calls, as the service knows them."""

    model_config = with_examples(
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
    limits: TenantLimits
    tokens_used_today: int


# --- usage ---

_WHOLE_DAY = r"^\d{4}-\d{2}-\d{2}$"


def _is_day(given: str) -> str:
    if not re.fullmatch(_WHOLE_DAY, given, re.ASCII):
        raise ValueError("must be a day such as 2026-11-16")
    read_date("it", given)
    return given


Day: TypeAlias = Annotated[
    str, Field(pattern=_WHOLE_DAY, json_schema_extra={"format": "date"}), AfterValidator(_is_day)
]

_SPENT: dict[str, Any] = {
    "day": examples.TIME[:10],
    "kind": "chat",
    "model": "gpt-4o-mini",
    "agent_id": None,
    "requests": 2,
    "input_tokens": 900,
    "output_tokens": 100,
    "total_tokens": 1000,
}


class UsageQuery(QueryParameters):
    """Which days are told, and by what they are told apart."""

    since: (
        Annotated[Day, Field(description="The first day, of UTC; 29 days before the last if absent.")] | None
    ) = None
    until: Annotated[Day, Field(description="The last day; today if absent.")] | None = None
    by: Literal["model", "agent"] = Field("model", description="Whether by model or by agent.")


class DailyUsage(UsageTotals):
    """What chats or learning have cost on a day, for a model or an agent; the other of these is null."""

    day: str = Field(json_schema_extra={"format": "date"})
    kind: Literal["chat", "learning"]
    model: str | None
    agent_id: str | None


class UsageOverTime(ResponseBody):
    """What models have cost, day by day; days without any are left out."""

    model_config = with_examples(
        {
            "since": "2026-10-18",
            "until": examples.TIME[:10],
            "totals": {"requests": 2, "input_tokens": 900, "output_tokens": 100, "total_tokens": 1000},
            "items": [_SPENT],
        }
    )

    since: str = Field(json_schema_extra={"format": "date"})
    until: str = Field(json_schema_extra={"format": "date"})
    totals: UsageTotals
    items: list[DailyUsage]
