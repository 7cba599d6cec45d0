"""Memories: what an agent knows about a user."""

from typing import Annotated, Any

from fastapi import Query, Request, Response

from ...errors import ConflictError
from ...memory.entry import CONTENT_TYPES
from ...memory.memory import Memory
from ...memory.store import MemoryStore
from ..cursors import read_cursor
from ..dependencies import OnceDep, Reader, ReadStore, ServiceDep, WriteStore, make_router
from ..idempotency import Ids
from ..problems import Problem, refused_input
from ..schemas import memories as schemas
from ..schemas.base import answer_json
from ..schemas.conversations import ReceiptTold
from ..schemas.problems import problems
from .shared import (
    MADE,
    VERSIONED,
    IfMatch,
    MemoryId,
    allow_only,
    answer_receipt,
    changed_since,
    check_match,
    check_page_size,
    found,
    need_admin_beyond_one_user,
    note_target,
    page_of,
    tag_of,
)

router = make_router("memories")
allow_only(router, "GET", "/v1/memories/of")


@router.get(
    "/v1/memories",
    operation_id="memories.list",
    summary="List memories",
    response_model=schemas.MemoryPage,
    responses=problems("read"),
)
async def list_memories(
    query: Annotated[schemas.MemoryQuery, Query()], caller: Reader, store: ReadStore, service: ServiceDep
) -> Response:
    """Without their contents: of an agent and a user, or, with the scope admin, of a user or of all."""
    need_admin_beyond_one_user(caller, query.agent_id, query.user_id)
    limit = check_page_size(service, query.limit)
    after = query.cursor and read_cursor("memories", query.cursor, str)[0]
    with refused_input():
        rows = await store.list_memories(query.agent_id, query.user_id, after=after, limit=limit + 1)
    return answer_json(page_of(rows, limit, "memories", lambda row: row.memory_id, lambda row: row.to_dict()))


@router.post(
    "/v1/memories",
    operation_id="memories.create",
    summary="Write a memory",
    status_code=201,
    response_model=schemas.MemoryTold,
    responses=MADE | problems("create", "not_found"),
)
async def create_memory(
    body: schemas.NewMemory, request: Request, store: WriteStore, once: OnceDep
) -> Response:
    """For an agent and a user who have none yet; else it is a conflict."""

    async def make(ids: Ids) -> dict[str, Any]:
        ids.about(body.user_id)
        memory_id = ids("memory")
        if await store.get_memory_outline(memory_id) is None:  # else an attempt before this one made it
            await _write(store, body, memory_id)
        return {"memory_id": memory_id}

    memory_id = (await once(make))["memory_id"]
    note_target(request, "memory", memory_id)
    memory = found(await store.get_memory_by_id(memory_id), "memory")
    headers = {"Location": f"/v1/memories/{memory_id}", **tag_of(memory.version)}
    return answer_json(memory.to_dict(), 201, headers)


async def _write(store: MemoryStore, body: schemas.NewMemory, memory_id: str) -> None:
    data = {f"{kind}_content": getattr(body, f"{kind}_content") for kind in CONTENT_TYPES}
    try:
        with refused_input():
            await store.save_memory(Memory(body.agent_id, body.user_id, data, memory_id))
    except ConflictError as error:
        raise Problem("conflict", "this agent and this user have a memory already") from error


@router.get(
    "/v1/memories/of",
    operation_id="memories.of",
    summary="Read the memory of an agent and a user",
    response_model=schemas.MemoryTold,
    responses=VERSIONED | problems("read", "not_found"),
)
async def get_memory_of(query: Annotated[schemas.OwnerQuery, Query()], store: ReadStore) -> Response:
    """What an agent knows about a user, now or as it was known at a time."""
    with refused_input():
        memory = await store.get_memory(query.agent_id, query.user_id, as_of=query.as_of)
    if memory is None:
        raise Problem("not_found", "this agent and this user have no memory")
    return _answer(memory)


@router.get(
    "/v1/memories/{memory_id}",
    operation_id="memories.get",
    summary="Read a memory",
    response_model=schemas.MemoryTold,
    responses=VERSIONED | problems("read", "not_found"),
)
async def get_memory(
    memory_id: MemoryId, query: Annotated[schemas.AsOf, Query()], store: ReadStore
) -> Response:
    """What is known, now or as it was known at a time. The `ETag` is what a change needs."""
    with refused_input():
        return _answer(found(await store.get_memory_by_id(memory_id, as_of=query.as_of), "memory"))


@router.patch(
    "/v1/memories/{memory_id}",
    operation_id="memories.change",
    summary="Edit a memory",
    response_model=schemas.MemoryTold,
    responses=VERSIONED | problems("send", "not_found", "precondition_failed", "precondition_required"),
)
async def change_memory(
    memory_id: MemoryId,
    body: schemas.MemoryChange,
    request: Request,
    store: WriteStore,
    if_match: IfMatch = None,
) -> Response:
    """A list that is given takes the place of the one that is stored: what it lacks is deleted for good.

    `If-Match` must name the `ETag` that was read, so that nobody's change is lost.
    """
    note_target(request, "memory", memory_id)
    if if_match is None:
        raise Problem("precondition_required", "send the ETag of the memory as If-Match")
    with refused_input():
        memory = found(await store.get_memory_by_id(memory_id), "memory")
        check_match(if_match, memory.version)
        return _answer(await _change(store, memory, body))


async def _change(store: MemoryStore, memory: Memory, body: schemas.MemoryChange) -> Memory:
    given = {name: texts for name, texts in body if texts is not None}
    told = {**memory.to_dict(), **given}
    try:
        return await store.save_memory(Memory.from_dict(told))
    except ConflictError as error:
        raise changed_since() from error


@router.delete(
    "/v1/memories/{memory_id}",
    operation_id="memories.delete",
    summary="Delete a memory",
    response_model=ReceiptTold,
    responses=problems("read", "not_found", "conflict"),
)
async def delete_memory(memory_id: MemoryId, request: Request, store: WriteStore) -> Response:
    """What it holds, for good. Conversations stay, and are not learned from again."""
    note_target(request, "memory", memory_id)
    with refused_input():
        found(await store.get_memory_outline(memory_id), "memory")
        receipt = await store.delete_memory(memory_id)
    return answer_receipt(receipt, "memory")


def _answer(memory: Memory) -> Response:
    return answer_json(memory.to_dict(), headers=tag_of(memory.version))
