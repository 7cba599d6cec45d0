"""What models have cost, day by day."""

from collections.abc import Sequence
from datetime import date, timedelta
from functools import reduce
from operator import add
from typing import Annotated, Any

from fastapi import Query, Response

from ...items import ModelUsage
from ...memory.run import Days, Spent, SpentBy
from ...memory.times import now
from ..dependencies import Reader, ReadStore, ServiceDep, make_router
from ..schemas import usage as schemas
from ..schemas.base import answer_json
from ..schemas.problems import problems
from .shared import refused

router = make_router("access")

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
    looking = service.provider.looking
    chats = await looking.spent_by_day(caller.tenant, days, by, _MOST_ROWS + 1)
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
