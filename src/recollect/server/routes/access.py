"""Who calls, and who did what."""

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
from ..cursors import read_cursor
from ..dependencies import Admin, Reader, ReadStore, ServiceDep, make_router
from ..problems import refused_input
from ..schemas import access as schemas
from ..schemas.base import answer_json
from ..schemas.problems import problems
from .shared import check_page_size, page_of, refused

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
    """What was done in this tenant, the newest first, by ids and never with contents."""
    limit = check_page_size(service, query.limit)
    before = query.cursor and read_cursor("audit", query.cursor, str)[0]
    with refused_input():
        entries = await service.audit.list(caller.tenant, before=before, limit=limit + 1)
    return answer_json(page_of(entries, limit, "audit", lambda entry: entry.entry_id, _tell_entry))


def _tell_entry(entry: AuditEntry) -> dict[str, Any]:
    told = {name: getattr(entry, name) for name in schemas.AuditTold.model_fields}
    return {**told, "at": format_time(entry.at)}


@router.get(
    "/v1/whoami",
    operation_id="access.whoami",
    summary="Read who calls",
    response_model=schemas.Whoami,
    responses=problems("read"),
)
async def whoami(caller: Reader, service: ServiceDep) -> Response:
    """The tenant and the scope of the key, and what the tenant may use."""
    limits = service.settings.limits_for(caller.tenant)
    told = {
        "tenant": caller.tenant,
        "scope": caller.scope,
        "key_id": caller.key_id,
        "limits": {name: getattr(limits, name) for name in schemas.LimitsTold.model_fields},
        "tokens_used_today": await service.ledger.used(caller.tenant),
    }
    return answer_json(told)


# --- usage ---

_SHOWN = timedelta(days=29)  # before the last, if nobody says
_MOST_DAYS = 366
_MOST_ROWS = 10_000


@router.get(
    "/v1/usage",
    operation_id="usage.list",
    summary="Read what models have cost over time",
    response_model=schemas.UsageOverTime,
    responses=problems("read"),
)
async def list_usage(
    query: Annotated[schemas.UsageQuery, Query()], caller: Reader, store: ReadStore, service: ServiceDep
) -> Response:
    """The tokens of chats and of learning, by day of UTC, and by model or by agent.

    They are those of all users of the tenant. What was erased is not among them; a budget counts that too.
    """
    days, by = _days_of(query), query.by
    inspector = service.provider.inspector
    chats = await inspector.spent_by_day(caller.tenant, days, by, _MOST_ROWS + 1)
    learning = await store.spent_by_day(days, by, _MOST_ROWS + 1)
    if len(chats) + len(learning) > _MOST_ROWS:
        raise refused("query.since", "there is too much for one answer: ask for fewer days")
    rows = [*_told("chat", chats, by), *_told("learning", learning, by)]
    return answer_json(
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
        raise refused("query.until", "must be a day before the last there is")
    first = last - min(_SHOWN, last - date.min) if query.since is None else date.fromisoformat(query.since)
    if not 0 <= (last - first).days < _MOST_DAYS:
        raise refused("query.since", f"must be at most {_MOST_DAYS - 1} days before until, and not after it")
    return Days(first, last)


def _told(kind: str, spent: Sequence[Spent], by: SpentBy) -> list[dict[str, Any]]:
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
