"""Who calls, and who did what."""

from typing import Annotated, Any

from fastapi import Query, Response

from ...memory.times import tell_time
from ..access.audit import AuditEntry
from ..cursors import read_cursor
from ..dependencies import Admin, Reader, ServiceDep, make_router
from ..problems import refused_input
from ..schemas import rights as schemas
from ..schemas.base import answer_json
from ..schemas.problems import problems
from .shared import check_page_size, page_of

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
    return {**told, "at": tell_time(entry.at)}


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
