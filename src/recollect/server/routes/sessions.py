"""Sessions: logs of items, for programs that keep their sessions in the service.

A session is named in the query string or the body: its id may be any text, which would not survive in a path.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any

from fastapi import Query, Response
from fastapi.responses import StreamingResponse

from ...errors import InvalidItemError
from ...ids import new_hex
from ..dependencies import Reader, ServiceDep, Writer, make_router
from ..problems import Problem, translate_input_errors
from ..schemas import sessions as schemas
from ..schemas.base import encode_json, json_response
from ..schemas.problems import problems
from ..sessions import ServiceSessions
from .shared import long_json_response
from .users import JSON_LINES

router = make_router("sessions")

_BLOCK = 500  # items that are encoded and sent at once


@router.get(
    "/v1/sessions/items",
    operation_id="sessions.items",
    summary="Read the items of a session",
    response_model=schemas.SessionItems,
    responses={200: {"content": {JSON_LINES: {"schema": {"type": "string"}}}}, **problems("read")},
)
async def get_items(
    query: Annotated[schemas.ItemsQuery, Query()], caller: Reader, service: ServiceDep
) -> Response:
    """All items, oldest first, or the newest ones. An unknown session has none."""
    with translate_input_errors():
        async with _sessions(service).open(caller.tenant, query.session_id) as session:
            items = await session.get_items(query.limit)
    if query.format == "jsonl":
        return StreamingResponse(_lines(items), media_type=JSON_LINES)
    return await long_json_response(lambda: {"items": items}, len(items))


@router.post(
    "/v1/sessions/items",
    operation_id="sessions.add",
    summary="Add items to a session",
    status_code=201,
    response_model=schemas.ItemsAdded,
    responses=problems("send"),
)
async def add_items(body: schemas.NewItems, caller: Writer, service: ServiceDep) -> Response:
    """The batch is stored when this responds. A repeated `batch_id` stores nothing."""
    sessions, batch_id = _sessions(service), body.batch_id or new_hex()
    with translate_input_errors():
        async with sessions.open(caller.tenant, body.session_id, body.user_id, body.agent_id) as session:
            try:
                is_new = await session.add_batch(body.items, batch_id)
            except InvalidItemError as error:
                raise Problem("validation_failed", f"body.items: {error}") from error
    return json_response({"is_new": is_new}, 201)


@router.post(
    "/v1/sessions/pop",
    operation_id="sessions.pop",
    summary="Remove the newest item of a session",
    response_model=schemas.PoppedItem,
    responses=problems("send"),
)
async def pop_item(body: schemas.PoppedFrom, caller: Writer, service: ServiceDep) -> Response:
    """The removed item. This cannot be repeated safely: each request removes one."""
    with translate_input_errors():
        async with _sessions(service).open(caller.tenant, body.session_id) as session:
            return json_response({"item": await session.pop_item()})


@router.delete(
    "/v1/sessions",
    operation_id="sessions.clear",
    summary="Delete a session",
    status_code=204,
    response_description="The session is deleted.",
    responses=problems("read"),
)
async def clear_session(
    query: Annotated[schemas.SessionQuery, Query()], caller: Writer, service: ServiceDep
) -> Response:
    """Remove all items and the session itself. An unknown session is not an error."""
    with translate_input_errors():
        async with _sessions(service).open(caller.tenant, query.session_id) as session:
            await session.clear_session()
    return Response(status_code=204)


def _sessions(service: ServiceDep) -> ServiceSessions:
    return ServiceSessions(service.settings.database)


async def _lines(items: Sequence[Any]) -> AsyncIterator[bytes]:
    """Items as lines, a block at a time."""
    for start in range(0, len(items), _BLOCK):
        block = items[start : start + _BLOCK]
        yield b"".join(encode_json(item) + b"\n" for item in block)
