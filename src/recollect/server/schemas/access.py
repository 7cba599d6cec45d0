"""The audit log, the caller, and model usage by day."""

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field

from ...memory.times import read_date
from . import examples
from .base import NextCursor, PageQuery, QueryParameters, ResponseBody, Timestamp, with_examples
from .conversation_details import UsageTotals


class AuditQuery(PageQuery):
    """The page of the audit log."""


class AuditEntryPayload(ResponseBody):
    """One audited request. It contains ids, never contents."""

    entry_id: str
    at: Timestamp
    key_id: str | None
    action: str
    target: str | None = Field(description="The ids of the objects that the request was about.")
    status: int
    request_id: str | None


class AuditPage(ResponseBody):
    """The audit log, newest entries first."""

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
    """The limits of the tenant; null means no limit."""

    requests_per_minute: int | None
    tokens_per_day: int | None
    retention_days: int | None


class Whoami(ResponseBody):
    """The caller: tenant, scope and limits."""

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
    key_id: str | None = Field(description="Null if the service runs without keys.")
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
    """The days to read, and how usage is grouped."""

    since: (
        Annotated[Day, Field(description="The first day (UTC); 29 days before the last if absent.")] | None
    ) = None
    until: Annotated[Day, Field(description="The last day; today if absent.")] | None = None
    by: Literal["model", "agent"] = Field("model", description="Group by model or by agent.")


class DailyUsage(UsageTotals):
    """Usage of chat or learning on a day, for a model or an agent; the other one is null."""

    day: str = Field(json_schema_extra={"format": "date"})
    kind: Literal["chat", "learning"]
    model: str | None
    agent_id: str | None


class UsageOverTime(ResponseBody):
    """Model usage by day. Days without usage are left out."""

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
