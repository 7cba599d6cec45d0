"""Users: what is stored about one, and erasing it.

Who it is stands in the query: their ids may be any text, and `a/b` or `..` would not survive in a path.
"""

from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any

from fastapi import Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from ...memory.memory import UserOutline
from ...memory.store import MemoryStore
from ..cursors import read_cursor
from ..dependencies import Admin, AdminStore, ServiceDep, make_router
from ..problems import refused_input
from ..schemas import users as schemas
from ..schemas.base import answer_json
from ..schemas.conversations import ReceiptTold
from ..schemas.problems import problems
from .shared import answer_long, check_page_size, encode_long, note_target, page_of

router = make_router("users")

JSON_LINES = "application/jsonl"

_AT_ONCE = 200  # rows
_PIECE = 64 * 1024  # bytes of a line that are sent at once
_LINES = {"content": {JSON_LINES: {"schema": {"type": "string"}}}}


@router.get(
    "/v1/users",
    operation_id="users.list",
    summary="List users",
    response_model=schemas.UserPage,
    responses=problems("read"),
)
async def list_users(
    query: Annotated[schemas.UserListQuery, Query()], store: AdminStore, service: ServiceDep
) -> Response:
    """All users of whom a memory or a conversation is stored, each once, in an order that stays the same."""
    limit = check_page_size(service, query.limit)
    after = query.cursor and read_cursor("users", query.cursor, str)[0]
    with refused_input():
        rows = await store.list_users(after=after, limit=limit + 1)
    return answer_json(page_of(rows, limit, "users", lambda row: row.position, UserOutline.to_dict))


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
        exported = await store.export_user(query.user_id, agent_id=query.agent_id)
    return await answer_long(lambda: exported, _size_of(exported))


async def _lines(store: MemoryStore, user_id: str, agent_id: str | None) -> AsyncIterator[bytes]:
    async for line in store.export_user_lines(user_id, agent_id=agent_id):
        text = await encode_long(partial(dict, line), _size_of(line.get("data", {}))) + b"\n"
        for start in range(0, len(text), _PIECE):
            yield text[start : start + _PIECE]


def _size_of(exported: dict[str, Any]) -> int:
    """About how many things an export tells, or one line of it: what stands in its lists, and in theirs."""
    found = [each for each in exported.values() if isinstance(each, list)]
    said: list[int] = [each["turn_count"] for each in exported.get("conversations", ())]
    return sum(map(len, found)) + sum(said) + int(exported.get("turn_count", 0))


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
        await service.provider.forget(await _conversations_of(store, query))
        receipt = await store.erase_user(query.user_id, agent_id=query.agent_id)
        if query.agent_id is None:  # a key does not tell whose agent's it is; it is gone within a day
            await service.idempotency.forget_user(caller.tenant, query.user_id)
    return answer_json(receipt.to_dict())


async def _conversations_of(store: MemoryStore, query: schemas.UserQuery) -> list[str]:
    """The ids of all conversations of a user, with all agents or with one."""
    found: list[str] = []
    after = None
    while page := await store.list_memories(query.agent_id, query.user_id, after=after, limit=_AT_ONCE):
        for memory in page:
            found += await _conversations_with(store, memory.agent_id, query.user_id)
        after = page[-1].memory_id
    return found


async def _conversations_with(store: MemoryStore, agent_id: str, user_id: str) -> list[str]:
    found: list[str] = []
    before = None
    while page := await store.list_conversations(agent_id, user_id, before=before, limit=_AT_ONCE):
        found += [told["conversation_id"] for told in page]
        before = page[-1]["position"]
    return found
