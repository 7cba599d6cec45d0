"""Entries: single remembered facts, with their evidence and history."""

from collections.abc import Sequence
from typing import Any

from fastapi import Request, Response

from ...errors import ConflictError
from ...memory.conversation import UNCHANGED
from ...memory.entry import Entry
from ...memory.operations.entries import ConfirmEntry, DeleteEntry, GetEntry, GetHistory, RejectEntry
from ...memory.operations.lists import ListEntriesOf
from ...memory.store import MemoryStore
from ..dependencies import OnceDep, ReadStore, WriteStore, caller_of, make_router
from ..idempotency import Ids
from ..problems import Problem, translate_input_errors
from ..schemas import entries as schemas
from ..schemas.base import json_response
from ..schemas.problems import problems
from .described import DescribedList, add_read, add_route
from .shared import CREATED, ContentId, MemoryId, invalid_field, require_found, set_audit_target

router = make_router("entries")


def _serialize_row(row: tuple[int, Entry]) -> dict[str, Any]:
    return {**row[1].to_dict(), "position": row[0]}


def _serialize_history(history: Sequence[Entry]) -> dict[str, Any]:
    return {"items": [entry.to_dict() for entry in history]}


_NO_KEY = "no key"  # the editor if the service requires none
DescribedList(ListEntriesOf, _serialize_row, "memory").add_to(router, schemas.EntryPage)


@router.post(
    "/v1/memories/{memory_id}/entries",
    operation_id="entries.create",
    summary="Create an entry",
    status_code=201,
    response_model=schemas.EntryPayload,
    responses=CREATED | problems("create", "not_found"),
)
async def create_entry(
    memory_id: MemoryId, body: schemas.NewEntry, request: Request, store: WriteStore, once: OnceDep
) -> Response:
    """Add an entry that a person states. It has no messages as evidence."""
    with translate_input_errors():
        memory = require_found(await store.get_memory_outline(memory_id), "memory")

    async def make(ids: Ids) -> dict[str, Any]:
        ids.about(memory.user_id)
        with translate_input_errors():
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
                tags=body.tags,
                expires_at=body.expires_at,
            )
        return {"content_id": entry.content_id}

    content_id = (await once(make))["content_id"]
    set_audit_target(request, "entry", content_id)
    entry = require_found(await store.get_entry(content_id), "entry")
    return json_response(entry.to_dict(), 201, {"Location": f"/v1/entries/{content_id}"})


@router.post(
    "/v1/entries",
    operation_id="entries.add",
    summary="Add an entry about a user",
    status_code=201,
    response_model=schemas.EntryAdded,
    responses=CREATED | problems("create", "not_found"),
)
async def add_entry(
    body: schemas.NewOwnedEntry, request: Request, store: WriteStore, once: OnceDep
) -> Response:
    """Add an entry that a person or a program states. The memory of the agent and user is created if needed.

    With `unless`, an entry that says the same is returned, and nothing is added.
    """
    if body.unless is not None and (body.content_id is not None or body.valid_to is not None):
        raise invalid_field("body.unless", "cannot be given together with content_id or valid_to")

    async def make(ids: Ids) -> dict[str, Any]:
        ids.about(body.user_id)
        with translate_input_errors():
            entry, is_new = await _add(store, body, ids)
        return {"content_id": entry.content_id, "is_new": is_new}

    made = await once(make)
    content_id = made["content_id"]
    set_audit_target(request, "entry", content_id)
    entry = require_found(await store.get_entry(content_id), "entry")
    added = {"entry": entry.to_dict(), "is_new": made["is_new"]}
    return json_response(added, 201, {"Location": f"/v1/entries/{content_id}"})


async def _add(store: MemoryStore, body: schemas.NewOwnedEntry, ids: Ids) -> tuple[Entry, bool]:
    owner_and_text = (body.agent_id, body.user_id, body.content_type, body.content_text)
    given: dict[str, Any] = {
        name: getattr(body, name) for name in ("valid_from", "confidence", "metadata", "tags", "expires_at")
    }
    if body.unless is not None:
        unless_rejected = body.unless == "known_or_rejected"
        return await store.add_entry_unless_known(*owner_and_text, **given, unless_rejected=unless_rejected)
    content_id = body.content_id or ids("entry")
    return await store.add_entry(
        *owner_and_text, **given, valid_to=body.valid_to, content_id=content_id
    ), True


_NO_ENTRY = "There is no entry with this id."

add_read(router, GetEntry, schemas.EntryPayload, Entry.to_dict, _NO_ENTRY)


def _add_review(operation: type[ConfirmEntry] | type[RejectEntry]) -> None:
    async def review(content_id: str, request: Request, store: MemoryStore) -> Response:
        set_audit_target(request, "entry", content_id)
        with translate_input_errors():
            require_found(await store.get_entry(content_id), "entry")
            try:
                entry = await store.perform(operation(content_id))
            except ConflictError as error:
                raise Problem("conflict", "The entry is retired.") from error
        return json_response(entry.to_dict())

    add_route(router, operation, review, schemas.EntryPayload)


_add_review(RejectEntry)
_add_review(ConfirmEntry)


@router.patch(
    "/v1/entries/{content_id}",
    operation_id="entries.change",
    summary="Edit an entry",
    response_model=schemas.EntryEdited,
    responses=problems("send", "not_found", "conflict"),
)
async def change_entry(
    content_id: ContentId, body: schemas.EntryChange, request: Request, store: WriteStore
) -> Response:
    """A new entry supersedes the old one and is returned. Editing a retired entry is a conflict.

    Two concurrent edits of one entry therefore cannot overwrite each other: the second one is refused.
    """
    set_audit_target(request, "entry", content_id)
    with translate_input_errors():
        require_found(await store.get_entry(content_id), "entry")
        try:
            entry = await store.edit_entry(
                content_id,
                body.content_text,
                edited_by=caller_of(request).key_id or _NO_KEY,
                metadata=body.metadata,
                tags=body.tags,
                expires_at=body.expires_at if "expires_at" in body.model_fields_set else UNCHANGED,
            )
        except ConflictError as error:
            raise Problem("conflict", "The entry is retired: another entry has superseded it.") from error
    return json_response(entry.to_dict())


async def _delete_entry(content_id: str, request: Request, store: MemoryStore) -> Response:
    set_audit_target(request, "entry", content_id)
    with translate_input_errors():
        deleted = await store.delete_entry(content_id)
    require_found(deleted or None, "entry")
    return json_response({"deleted": deleted})


add_route(router, DeleteEntry, _delete_entry, schemas.EntryDeleted)
add_read(router, GetHistory, schemas.History, _serialize_history, _NO_ENTRY)


@router.get(
    "/v1/entries/{content_id}/why",
    operation_id="entries.why",
    summary="Read why an entry is known",
    response_model=schemas.WhyResponse,
    responses=problems("read", "not_found"),
)
async def get_why(content_id: ContentId, store: ReadStore) -> Response:
    """The messages that the entry rests on, quoted, and the run that extracted it."""
    with translate_input_errors():
        return json_response(require_found(await store.why(content_id), "entry").to_dict())
