"""Users: list, export and erase them.

A user is named in the query string. An id may be any text, and `a/b` or `..` would not survive in a path.
"""

from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any

from fastapi import Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from ...memory.memory import UserOutline
from ...memory.operations.lists import ListUsers
from ...memory.store import MemoryStore
from ..dependencies import Admin, AdminStore, ServiceDep, make_router
from ..problems import translate_input_errors
from ..schemas import users as schemas
from ..schemas.base import json_response
from ..schemas.conversations import ReceiptPayload
from ..schemas.problems import problems
from .described import DescribedList
from .shared import encode_long_json, long_json_response, set_audit_target

router = make_router("users")

JSON_LINES = "application/jsonl"

_PAGE_SIZE = 200  # rows
_CHUNK = 64 * 1024  # bytes of a line that are sent at once


def _serialize_user(row: UserOutline) -> dict[str, Any]:
    return {**row.to_dict(), "position": row.position}


_JSONL_RESPONSE = {"content": {JSON_LINES: {"schema": {"type": "string"}}}}


DescribedList(ListUsers, _serialize_user).add_to(router, schemas.UserPage)


@router.get(
    "/v1/users/export",
    operation_id="users.export",
    summary="Export the data of a user",
    response_model=schemas.UserExport,
    responses={200: _JSONL_RESPONSE, **problems("read")},
    openapi_extra={"x-audited": True},
)
async def export_user(
    query: Annotated[schemas.ExportQuery, Query()],
    request: Request,
    store: AdminStore,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
) -> Response:
    """Everything stored about a user, with all agents or with one.

    JSON Lines suit large exports: they are read and sent page by page. The first line names the user. Every
    other line has the `kind` and the `data` of one object.
    """
    with translate_input_errors():
        set_audit_target(request, "user", await store.receipt_subject(query.user_id))
        if query.format == "jsonl" or (query.format is None and JSON_LINES in accept):
            lines = await _start(_lines(store, query.user_id, query.agent_id))
            return StreamingResponse(lines, media_type=JSON_LINES)
        exported = await store.export_user(query.user_id, agent_id=query.agent_id)
    return await long_json_response(lambda: exported, _size_of(exported))


async def _lines(store: MemoryStore, user_id: str, agent_id: str | None) -> AsyncIterator[bytes]:
    async for line in store.export_user_lines(user_id, agent_id=agent_id):
        text = await encode_long_json(partial(dict, line), _size_of(line.get("data", {}))) + b"\n"
        for start in range(0, len(text), _CHUNK):
            yield text[start : start + _CHUNK]


def _size_of(exported: dict[str, Any]) -> int:
    """The approximate number of objects in an export, or in one line of it, messages included."""
    lists = [value for value in exported.values() if isinstance(value, list)]
    messages: list[int] = [each["turn_count"] for each in exported.get("conversations", ())]
    return sum(map(len, lists)) + sum(messages) + int(exported.get("turn_count", 0))


async def _start(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Read the first line before the response starts: an error until then becomes a problem document."""
    first = await anext(lines)

    async def all_lines() -> AsyncIterator[bytes]:
        yield first
        async for line in lines:
            yield line

    return all_lines()


@router.delete(
    "/v1/users",
    operation_id="users.erase",
    summary="Erase a user",
    response_model=ReceiptPayload,
    responses=problems("read", "conflict"),
)
async def erase_user(
    query: Annotated[schemas.UserQuery, Query()],
    request: Request,
    caller: Admin,
    store: AdminStore,
    service: ServiceDep,
) -> Response:
    """Erase everything stored about a user, with all agents or with one. This cannot be undone.

    Erasing a user without data is not an error: the receipt then counts nothing.
    """
    with translate_input_errors():
        set_audit_target(request, "user", await store.receipt_subject(query.user_id))
        await service.provider.forget(await _conversations_of(store, query))
        if query.agent_id is None:  # keys are not stored by agent; the rest expires within a day
            await service.idempotency.forget_user(caller.tenant, query.user_id)
        # Last, because it also empties the log of a SQLite file.
        receipt = await store.erase_user(query.user_id, agent_id=query.agent_id)
    return json_response(receipt.to_dict())


@router.post(
    "/v1/vacuum",
    operation_id="database.vacuum",
    summary="Remove erased data from the files of the database",
    status_code=204,
    response_description="The files are rewritten.",
    responses=problems("read"),
)
async def vacuum(query: Annotated[schemas.VacuumQuery, Query()], store: AdminStore) -> Response:
    """SQLite rewrites its file and empties its log. PostgreSQL vacuums the tables with data of users.

    It takes a while, and concerns the data of all tenants. Backups are not changed.
    """
    await store.vacuum(full=query.full)
    return Response(status_code=204)


async def _conversations_of(store: MemoryStore, query: schemas.UserQuery) -> list[str]:
    """The ids of all conversations of a user, with all agents or with one."""
    ids: list[str] = []
    after = None
    while page := await store.list_memories(query.agent_id, query.user_id, after=after, limit=_PAGE_SIZE):
        for memory in page:
            ids += await _conversations_with(store, memory.agent_id, query.user_id)
        after = page[-1].memory_id
    return ids


async def _conversations_with(store: MemoryStore, agent_id: str, user_id: str) -> list[str]:
    ids: list[str] = []
    before = None
    while page := await store.list_conversations(agent_id, user_id, before=before, limit=_PAGE_SIZE):
        ids += [outline["conversation_id"] for outline in page]
        before = page[-1]["position"]
    return ids
