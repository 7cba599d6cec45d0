"""Entries: one thing each that is known, with its evidence and its history."""

from typing import Annotated, Any

from fastapi import Query, Request, Response

from ...errors import ConflictError
from ..cursors import read_cursor
from ..dependencies import OnceDep, ReadStore, ServiceDep, WriteStore, caller_of, make_router
from ..idempotency import Ids
from ..problems import Problem, refused_input
from ..schemas import entries as schemas
from ..schemas.base import answer_json
from ..schemas.problems import problems
from .shared import MADE, ContentId, MemoryId, check_page_size, found, note_target, page_of

router = make_router("entries")


@router.get(
    "/v1/memories/{memory_id}/entries",
    operation_id="entries.list",
    summary="List the entries of a memory",
    response_model=schemas.EntryPage,
    responses=problems("read", "not_found"),
)
async def list_entries(
    memory_id: MemoryId,
    query: Annotated[schemas.EntryQuery, Query()],
    store: ReadStore,
    service: ServiceDep,
) -> Response:
    """In the order in which they were learned, each with its evidence."""
    limit = check_page_size(service, query.limit)
    after = None if query.cursor is None else read_cursor("entries", query.cursor, int)[0]
    with refused_input():
        rows = await store.list_entries_of(
            memory_id,
            content_type=query.type,
            as_of=query.as_of,
            include_retired=query.include_retired,
            after=after,
            limit=limit + 1,
        )
    page = page_of(found(rows, "memory"), limit, "entries", lambda row: row[0], lambda row: row[1].to_dict())
    return answer_json(page)


@router.post(
    "/v1/memories/{memory_id}/entries",
    operation_id="entries.create",
    summary="Write an entry",
    status_code=201,
    response_model=schemas.EntryTold,
    responses=MADE | problems("create", "not_found"),
)
async def create_entry(
    memory_id: MemoryId, body: schemas.NewEntry, request: Request, store: WriteStore, once: OnceDep
) -> Response:
    """What a person knows, without any evidence but their word."""
    with refused_input():
        memory = found(await store.get_memory_outline(memory_id), "memory")

    async def make(ids: Ids) -> dict[str, Any]:
        ids.about(memory.user_id)
        with refused_input():
            entry = await store.add_entry(
                memory.agent_id,
                memory.user_id,
                body.content_type,
                body.content_text,
                valid_from=body.valid_from,
                valid_to=body.valid_to,
                confidence=body.confidence,
                content_id=ids("entry"),
                metadata=body.metadata,
            )
        return {"content_id": entry.content_id}

    content_id = (await once(make))["content_id"]
    note_target(request, "entry", content_id)
    entry = found(await store.get_entry(content_id), "entry")
    return answer_json(entry.to_dict(), 201, {"Location": f"/v1/entries/{content_id}"})


@router.get(
    "/v1/entries/{content_id}",
    operation_id="entries.get",
    summary="Read an entry",
    response_model=schemas.EntryTold,
    responses=problems("read", "not_found"),
)
async def get_entry(content_id: ContentId, store: ReadStore) -> Response:
    """Also one that is no longer told."""
    with refused_input():
        return answer_json(found(await store.get_entry(content_id), "entry").to_dict())


@router.patch(
    "/v1/entries/{content_id}",
    operation_id="entries.change",
    summary="Put an entry right",
    response_model=schemas.EntryEdited,
    responses=problems("send", "not_found", "conflict"),
)
async def change_entry(
    content_id: ContentId, body: schemas.EntryChange, request: Request, store: WriteStore
) -> Response:
    """A new entry takes its place, and is answered. One that is no longer told is a conflict.

    So two who edit the same entry cannot overwrite each other: the second is refused.
    """
    note_target(request, "entry", content_id)
    with refused_input():
        found(await store.get_entry(content_id), "entry")
        try:
            entry = await store.edit_entry(
                content_id,
                body.content_text,
                edited_by=caller_of(request).key_id,
                metadata=body.metadata,
            )
        except ConflictError as error:
            raise Problem("conflict", "the entry is no longer told: another has taken its place") from error
    return answer_json(entry.to_dict())


@router.delete(
    "/v1/entries/{content_id}",
    operation_id="entries.delete",
    summary="Delete an entry",
    response_model=schemas.EntryDeleted,
    responses=problems("read", "not_found"),
)
async def delete_entry(content_id: ContentId, request: Request, store: WriteStore) -> Response:
    """For good, with all that it has superseded."""
    note_target(request, "entry", content_id)
    with refused_input():
        deleted = await store.delete_entry(content_id)
    found(deleted or None, "entry")
    return answer_json({"deleted": deleted})


@router.get(
    "/v1/entries/{content_id}/history",
    operation_id="entries.history",
    summary="Read the history of an entry",
    response_model=schemas.History,
    responses=problems("read", "not_found"),
)
async def get_history(content_id: ContentId, store: ReadStore) -> Response:
    """The entry with what it has superseded, the oldest first."""
    with refused_input():
        history = await store.get_history(content_id)
    found(history or None, "entry")
    return answer_json({"items": [entry.to_dict() for entry in history]})


@router.get(
    "/v1/entries/{content_id}/why",
    operation_id="entries.why",
    summary="Ask why something is known",
    response_model=schemas.WhyTold,
    responses=problems("read", "not_found"),
)
async def get_why(content_id: ContentId, store: ReadStore) -> Response:
    """The messages that say so, quoted, and the run that read it there."""
    with refused_input():
        return answer_json(found(await store.why(content_id), "entry").to_dict())
