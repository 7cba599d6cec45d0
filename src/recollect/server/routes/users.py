"""Users: what is stored about one, and erasing it.

Who it is stands in the query: their ids may be any text, and `a/b` or `..` would not survive in a path.
"""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from ...memory.store import MemoryStore
from ..dependencies import Admin, AdminStore, ServiceDep, make_router
from ..problems import refused_input
from ..schemas import rights as schemas
from ..schemas.base import answer_json, encoded
from ..schemas.conversations import ReceiptTold
from ..schemas.problems import problems
from .shared import note_target

router = make_router("users")

JSON_LINES = "application/jsonl"

_LINES = {"content": {JSON_LINES: {"schema": {"type": "string"}}}}


@router.get(
    "/v1/users/export",
    operation_id="users.export",
    summary="Export everything about a user",
    response_model=schemas.UserExport,
    responses={200: _LINES, **problems("read")},
    openapi_extra={"x-audited": True},
)
async def export_user(
    query: Annotated[schemas.ExportQuery, Query()],
    request: Request,
    store: AdminStore,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
) -> Response:
    """With all agents or with one. JSON Lines are sent a page at a time, and are meant for large exports.

    The first line tells whose data it is; each other has the `kind` and the `data` of one thing.
    """
    with refused_input():
        note_target(request, "user", await store.receipt_subject(query.user_id))
        if query.format == "jsonl" or (query.format is None and JSON_LINES in accept):
            lines = await _started(_lines(store, query.user_id, query.agent_id))
            return StreamingResponse(lines, media_type=JSON_LINES)
        return answer_json(await store.export_user(query.user_id, agent_id=query.agent_id))


async def _lines(store: MemoryStore, user_id: str, agent_id: str | None) -> AsyncIterator[bytes]:
    # As `export_user_to` writes them; a file cannot wait for a slow reader.
    records = store._records(user_id, agent_id)
    yield encoded(store._heading(user_id, agent_id)) + b"\n"
    async for record in records:
        yield encoded({"kind": record.kind, "data": record.data}) + b"\n"


async def _started(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Lines of which the first is there: what goes wrong before it can still be answered as a problem."""
    first = await anext(lines)

    async def all_of_them() -> AsyncIterator[bytes]:
        yield first
        async for line in lines:
            yield line

    return all_of_them()


@router.delete(
    "/v1/users",
    operation_id="users.erase",
    summary="Erase a user",
    response_model=ReceiptTold,
    responses=problems("read", "conflict"),
)
async def erase_user(
    query: Annotated[schemas.UserQuery, Query()],
    request: Request,
    caller: Admin,
    store: AdminStore,
    service: ServiceDep,
) -> Response:
    """All that is stored about them, with all agents or with one, for good.

    Erasing a user of whom nothing is stored is no error: the receipt says that nothing went.
    """
    with refused_input():
        note_target(request, "user", await store.receipt_subject(query.user_id))
        receipt = await store.erase_user(query.user_id, agent_id=query.agent_id)
        await service.idempotency.forget_user(caller.tenant, query.user_id)
    return answer_json(receipt.to_dict())
