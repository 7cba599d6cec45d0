"""The caller's identity, the audit log, and model usage over time."""

from collections.abc import Sequence
from datetime import date, timedelta
from functools import reduce
from operator import add
from typing import Annotated, Any

from fastapi import Query, Response

from ...items import ModelUsage
from ...memory.run import Days, Spent, SpentBy
from ...memory.times import format_time, now
from ..access.audit import AuditEntry
from ..dependencies import Admin, Reader, ReadStore, ServiceDep, make_router
from ..schemas import access as schemas
from ..schemas.base import json_response
from ..schemas.problems import problems
from .shared import Pages, invalid_field

router = make_router("access")


@router.get(
    "/v1/audit",
    operation_id="audit.list",
    summary="Read the audit log",
    response_model=schemas.AuditPage,
    responses=problems("read"),
)
async def list_audit(
    query: Annotated[schemas.AuditQuery, Query()], caller: Admin, service: ServiceDep
) -> Response:
    """The audit log of the tenant, newest entries first. Entries contain ids, never contents."""
    return await _AUDIT_PAGES.respond(
        service,
        query,
        lambda before, limit: service.audit.list(caller.tenant, before=before, limit=limit),
    )


def _serialize_entry(entry: AuditEntry) -> dict[str, Any]:
    fields = {name: getattr(entry, name) for name in schemas.AuditEntryPayload.model_fields}
    return {**fields, "at": format_time(entry.at)}


_AUDIT_PAGES: Pages[AuditEntry] = Pages("audit", lambda entry: entry.entry_id, _serialize_entry)


@router.get(
    "/v1/whoami",
    operation_id="access.whoami",
    summary="Read the caller of a key",
    response_model=schemas.Whoami,
    responses=problems("read"),
)
async def whoami(caller: Reader, service: ServiceDep) -> Response:
    """The tenant and scope of your key, the tenant's limits, and its tokens of today."""
    limits = service.settings.limits_for(caller.tenant)
    body = {
        "tenant": caller.tenant,
        "scope": caller.scope,
        "key_id": caller.key_id,
        "limits": {name: getattr(limits, name) for name in schemas.TenantLimits.model_fields},
        "tokens_used_today": await service.ledger.used(caller.tenant),
    }
    return json_response(body)


# --- usage ---

_DEFAULT_SPAN = timedelta(days=29)  # before the last day
_MAX_DAYS = 366
_MAX_ROWS = 10_000


@router.get(
    "/v1/usage",
    operation_id="usage.list",
    summary="Read model usage over time",
    response_model=schemas.UsageOverTime,
    responses=problems("read"),
)
async def list_usage(
    query: Annotated[schemas.UsageQuery, Query()], caller: Reader, store: ReadStore, service: ServiceDep
) -> Response:
    """Tokens of chat and learning for all users of the tenant, by UTC day and by model or agent.

    Tokens of erased conversations are not included. The daily budget still counts them.
    """
    days, by = _days_of(query), query.by
    inspector = service.provider.inspector
    chats = await inspector.spent_by_day(caller.tenant, days, by, _MAX_ROWS + 1)
    learning = await store.spent_by_day(days, by, _MAX_ROWS + 1)
    if len(chats) + len(learning) > _MAX_ROWS:
        raise invalid_field("query.since", "selects too many rows for one response: ask for fewer days")
    rows = [*_serialize_usage("chat", chats, by), *_serialize_usage("learning", learning, by)]
    return json_response(
        {
            "since": days.first.isoformat(),
            "until": days.last.isoformat(),
            "totals": reduce(add, (each.usage for each in [*chats, *learning]), ModelUsage()).to_dict(),
            "items": sorted(rows, key=lambda row: str(row["day"])),
        }
    )


def _days_of(query: schemas.UsageQuery) -> Days:
    last = now().date() if query.until is None else date.fromisoformat(query.until)
    if last == date.max:
        raise invalid_field("query.until", f"must be before {date.max}")
    first = (
        last - min(_DEFAULT_SPAN, last - date.min) if query.since is None else date.fromisoformat(query.since)
    )
    if not 0 <= (last - first).days < _MAX_DAYS:
        raise invalid_field(
            "query.since", f"must be at most {_MAX_DAYS - 1} days before until, and not after it"
        )
    return Days(first, last)


def _serialize_usage(kind: str, spent: Sequence[Spent], by: SpentBy) -> list[dict[str, Any]]:
    return [
        {
            "day": each.day,
            "kind": kind,
            "model": each.name if by == "model" else None,
            "agent_id": each.name if by == "agent" else None,
            **each.usage.to_dict(),
        }
        for each in spent
    ]
