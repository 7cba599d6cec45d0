"""Memories: all entries of one agent about one user."""

from operator import attrgetter
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response

from ...errors import ConflictError
from ...memory.entry import CONTENT_TYPES
from ...memory.memory import Memory, MemoryOutline
from ...memory.operations.lists import ListMemories
from ...memory.operations.memories import GetMemory, GetMemoryById
from ...memory.store import MemoryStore
from ..dependencies import OnceDep, WriteStore, make_router
from ..idempotency import Ids
from ..problems import Problem, translate_input_errors
from ..schemas import memories as schemas
from ..schemas.base import json_response
from ..schemas.conversations import ReceiptPayload
from ..schemas.problems import problems
from .described import DescribedList, add_read
from .shared import (
    CREATED,
    VERSIONED,
    IfMatch,
    MemoryId,
    allow_only,
    changed_problem,
    check_if_match,
    etag_header,
    receipt_response,
    require_found,
    set_audit_target,
)

router = make_router("memories")

allow_only(router, "GET", "/v1/memories/of")


DescribedList(ListMemories, MemoryOutline.to_dict).add_to(router, schemas.MemoryPage)


@router.post(
    "/v1/memories",
    operation_id="memories.create",
    summary="Create a memory",
    status_code=201,
    response_model=schemas.MemoryPayload,
    responses=CREATED | problems("create", "not_found"),
)
async def create_memory(
    body: schemas.NewMemory, request: Request, store: WriteStore, once: OnceDep
) -> Response:
    """Create the memory of an agent and a user. If it exists already, this is a conflict."""

    async def make(ids: Ids) -> dict[str, Any]:
        ids.about(body.user_id)
        memory_id = body.memory_id or ids("memory")
        # An earlier attempt of this request may have made it.
        if ids.are_new or await store.get_memory_outline(memory_id) is None:
            await _create(store, body, memory_id)
        return {"memory_id": memory_id}

    memory_id = (await once(make))["memory_id"]
    set_audit_target(request, "memory", memory_id)
    memory = require_found(await store.get_memory_by_id(memory_id), "memory")
    headers = {"Location": f"/v1/memories/{quote(memory_id, safe='')}", **etag_header(memory.version)}
    return json_response(memory.to_dict(), 201, headers)


async def _create(store: MemoryStore, body: schemas.NewMemory, memory_id: str) -> None:
    data = {f"{kind}_content": getattr(body, f"{kind}_content") for kind in CONTENT_TYPES}
    try:
        with translate_input_errors():
            await store.save_memory(Memory(body.agent_id, body.user_id, data, memory_id))
    except ConflictError as error:
        raise Problem("conflict", "This agent and user already have a memory.") from error


add_read(
    router,
    GetMemory,
    schemas.MemoryPayload,
    Memory.to_dict,
    "This agent and user have no memory.",
    attrgetter("version"),
)
add_read(
    router,
    GetMemoryById,
    schemas.MemoryPayload,
    Memory.to_dict,
    "There is no memory with this id.",
    attrgetter("version"),
)


@router.patch(
    "/v1/memories/{memory_id}",
    operation_id="memories.change",
    summary="Edit a memory",
    response_model=schemas.MemoryPayload,
    responses=VERSIONED | problems("send", "not_found", "precondition_failed", "precondition_required"),
)
async def change_memory(
    memory_id: MemoryId,
    body: schemas.MemoryChange,
    request: Request,
    store: WriteStore,
    if_match: IfMatch = None,
) -> Response:
    """A given list replaces the stored one. Texts that it lacks are deleted permanently.

    `If-Match` must name the `ETag` that you read, so that no concurrent change is lost.
    """
    set_audit_target(request, "memory", memory_id)
    if if_match is None:
        raise Problem("precondition_required", "Send the ETag of the memory in an If-Match header.")
    with translate_input_errors():
        memory = require_found(await store.get_memory_by_id(memory_id), "memory")
        check_if_match(if_match, memory.version)
        return _memory_response(await _change(store, memory, body))


async def _change(store: MemoryStore, memory: Memory, body: schemas.MemoryChange) -> Memory:
    given = {name: texts for name, texts in body if texts is not None}
    changed = {**memory.to_dict(), **given}
    try:
        return await store.save_memory(Memory.from_dict(changed))
    except ConflictError as error:
        raise changed_problem() from error


@router.delete(
    "/v1/memories/{memory_id}",
    operation_id="memories.delete",
    summary="Delete a memory",
    response_model=ReceiptPayload,
    responses=problems("read", "not_found", "conflict"),
)
async def delete_memory(memory_id: MemoryId, request: Request, store: WriteStore) -> Response:
    """Delete all its entries permanently. Conversations stay, and are not learned from again."""
    set_audit_target(request, "memory", memory_id)
    with translate_input_errors():
        require_found(await store.get_memory_outline(memory_id), "memory")
        receipt = await store.delete_memory(memory_id)
    return receipt_response(receipt, "memory")


def _memory_response(memory: Memory) -> Response:
    return json_response(memory.to_dict(), headers=etag_header(memory.version))
