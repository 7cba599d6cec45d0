"""Conversations: recording them, reading them, and erasing them."""

from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request, Response

from ...memory.conversation import Conversation
from ...memory.times import format_time
from ..cursors import make_cursor, read_cursor
from ..dependencies import OnceDep, Reader, ReadStore, ServiceDep, WriteStore, make_router
from ..idempotency import Ids
from ..problems import refused_input
from ..schemas import conversations as schemas
from ..schemas.base import answer_json
from ..schemas.problems import problems
from ..schemas.searches import ConversationSearchAsked, TurnsFound
from .searches import tell_hits, wait_if_asked
from .shared import (
    MADE,
    ConversationId,
    Wait,
    allow_only,
    answer_long,
    answer_receipt,
    check_count,
    check_hit_limit,
    check_page_size,
    found,
    need_admin_beyond_one_user,
    note_target,
    page_of,
    tell_messages,
)

router = make_router("conversations")
allow_only(router, "POST", "/v1/conversations/search")

_OUTLINE = tuple(schemas.ConversationOutline.model_fields)


@router.post(
    "/v1/conversations",
    operation_id="conversations.create",
    summary="Save a conversation",
    status_code=201,
    response_model=schemas.ConversationSaved,
    responses=MADE | problems("create", "not_found"),
)
async def create_conversation(
    body: schemas.NewConversation,
    request: Request,
    store: WriteStore,
    service: ServiceDep,
    once: OnceDep,
    wait: Wait = None,
) -> Response:
    """What was said is stored when this answers, and is learned from at once, in the background.

    With `wait` the answer comes when that is done, or when so many seconds are over.
    """
    check_count(service, body.messages)

    async def make(ids: Ids) -> dict[str, Any]:
        ids.about(body.user_id)
        with refused_input():
            saved = await store.record_conversation(
                body.agent_id,
                body.user_id,
                tell_messages(body.messages, ids),
                session_id=body.session_id,
                conversation_id=ids("conversation"),
                memory_id=body.memory_id,
                created_at=body.created_at,
                metadata=body.metadata,
            )
        note_target(request, "conversation", saved.conversation_id)
        made.append(saved)
        return {"conversation_id": saved.conversation_id}

    made: list[Conversation] = []
    kept = await once(make)
    told = _tell_made(made[0]) if made else await _tell_kept(store, kept["conversation_id"])
    learned = {}
    if wait is not None:
        learned = {"learned": await store.wait_until_learned(body.agent_id, body.user_id, timeout=wait)}
    return _answer_saved(told, len(body.messages), learned)


def _tell_made(saved: Conversation) -> dict[str, Any]:
    return {
        "conversation_id": saved.conversation_id,
        "session_id": saved.session_id,
        "created_at": format_time(saved.created_at),
    }


async def _tell_kept(store: ReadStore, conversation_id: str) -> dict[str, Any]:
    """What an earlier request with the same key has made; if it was erased since, that is not found."""
    told = found(await store.get_conversation_outline(conversation_id), "conversation")
    return {name: told[name] for name in ("conversation_id", "session_id", "created_at")}


def _answer_saved(told: dict[str, Any], count: int, learned: dict[str, bool]) -> Response:
    saved = {
        "success": True,
        "message": "Conversation saved successfully",
        **told,
        "message_count": count,
        **learned,
    }
    return answer_json(saved, 201, {"Location": f"/v1/conversations/{told['conversation_id']}"})


@router.get(
    "/v1/conversations",
    operation_id="conversations.list",
    summary="List conversations",
    response_model=schemas.ConversationPage,
    responses=problems("read"),
)
async def list_conversations(
    query: Annotated[schemas.ConversationQuery, Query()],
    caller: Reader,
    store: ReadStore,
    service: ServiceDep,
) -> Response:
    """The newest first: of an agent and a user, or, with the scope admin, of one of them or of all.

    `q` narrows them to those that hold some words. With it, and of one agent alone, a page looks through
    10,000 conversations at most: it may not be full, or be empty, and have a `next_cursor` all the same.
    """
    need_admin_beyond_one_user(caller, query.agent_id, query.user_id)
    limit = check_page_size(service, query.limit)
    before = query.cursor and read_cursor("conversations", query.cursor, str)[0]
    with refused_input():
        if query.q is None and (query.agent_id is None) == (query.user_id is None):
            return answer_json(await _list(store, query, before, limit))
        return answer_json(await _find(store, query, before, limit))


async def _list(
    store: ReadStore, query: schemas.ConversationQuery, before: str | None, limit: int
) -> dict[str, Any]:
    rows = await store.list_conversations(
        query.agent_id, query.user_id, session_id=query.session_id, before=before, limit=limit + 1
    )
    return page_of(rows, limit, "conversations", lambda row: row["position"], _tell_outline)


async def _find(
    store: ReadStore, query: schemas.ConversationQuery, before: str | None, limit: int
) -> dict[str, Any]:
    page = await store.find_conversations(
        query.q,
        agent_id=query.agent_id,
        user_id=query.user_id,
        session_id=query.session_id,
        before=before,
        limit=limit,
    )
    next_cursor = None if page.position is None else make_cursor("conversations", page.position)
    return {"items": list(map(_tell_outline, page.conversations)), "next_cursor": next_cursor}


@router.get(
    "/v1/conversations/{conversation_id}",
    operation_id="conversations.get",
    summary="Read a conversation",
    response_model=schemas.ConversationTold,
    responses=problems("read", "not_found"),
)
async def get_conversation(conversation_id: ConversationId, store: ReadStore) -> Response:
    """With all of its messages; long ones are better read page by page, by their messages."""
    with refused_input():
        outline = found(await store.get_conversation_outline(conversation_id), "conversation")
        conversation = found(await store.get_conversation(conversation_id), "conversation")
    return await answer_long(partial(_tell_whole, outline, conversation), conversation.turn_count)


@router.get(
    "/v1/conversations/{conversation_id}/outline",
    operation_id="conversations.outline",
    summary="Read what a conversation is, without its messages",
    response_model=schemas.ConversationOutline,
    responses=problems("read", "not_found"),
)
async def get_outline(conversation_id: ConversationId, store: ReadStore) -> Response:
    """Whose it is, how long, and how it begins: as cheap for a long one as for a short one."""
    with refused_input():
        outline = found(await store.get_conversation_outline(conversation_id), "conversation")
    return answer_json(_tell_outline(outline))


def _tell_whole(outline: dict[str, Any], conversation: Conversation) -> dict[str, Any]:
    return {**_tell_outline(outline), **conversation.to_dict()}


@router.delete(
    "/v1/conversations/{conversation_id}",
    operation_id="conversations.delete",
    summary="Erase a conversation",
    response_model=schemas.ReceiptTold,
    responses=problems("read", "not_found", "conflict"),
)
async def delete_conversation(
    conversation_id: ConversationId, request: Request, store: WriteStore, service: ServiceDep
) -> Response:
    """With everything that was learned from it, for good. The receipt holds nothing personal."""
    note_target(request, "conversation", conversation_id)
    with refused_input():
        found(await store.get_conversation_outline(conversation_id), "conversation")
        await service.provider.forget([conversation_id])  # while its id there is still known here
        receipt = await store.erase_conversation(conversation_id)
    return answer_receipt(receipt, "conversation")


@router.post(
    "/v1/conversations/{conversation_id}/close",
    operation_id="conversations.close",
    summary="Close a conversation",
    response_model=schemas.ConversationOutline,
    responses=problems("send", "not_found", "conflict"),
)
async def close_conversation(
    conversation_id: ConversationId, request: Request, store: WriteStore
) -> Response:
    """Nothing can be added to it any more, and what is left of it is learned from at once.

    Closing it twice is harmless.
    """
    note_target(request, "conversation", conversation_id)
    with refused_input():
        found(await store.close_conversation(conversation_id), "conversation")
        outline = found(await store.get_conversation_outline(conversation_id), "conversation")
    return answer_json(_tell_outline(outline))


@router.post(
    "/v1/conversations/search",
    operation_id="conversations.search",
    summary="Search what was said",
    response_model=TurnsFound,
    responses=problems("send"),
    openapi_extra={"x-audited": False},
)
async def search_conversations(
    body: ConversationSearchAsked, store: ReadStore, service: ServiceDep, wait: Wait = None
) -> Response:
    """The messages that answer a question best, by words and by meaning: of one agent or all of a user."""
    limit = check_hit_limit(service, body.limit)
    await wait_if_asked(store, body, wait)
    with refused_input():
        search = await store.search_conversations(
            body.query,
            body.agent_id,
            body.user_id,
            limit=limit,
            session_id=body.session_id,
            since=body.since,
            until=body.until,
        )
    return answer_json({"items": tell_hits(search.hits, body.explain), "warnings": list(search.warnings)})


def _tell_outline(outline: dict[str, Any]) -> dict[str, Any]:
    return {name: outline[name] for name in _OUTLINE}
