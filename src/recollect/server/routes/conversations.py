"""Conversations: record, list, read, search, close and erase them."""

from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Query, Request, Response

from ...cursors import make_cursor
from ...memory.conversation import Conversation
from ...memory.operations.conversations import GetConversation, GetConversationOutline
from ...memory.operations.lists import FindConversations, ListConversations
from ...memory.operations.search import SearchConversations
from ...memory.store import MemoryStore
from ...memory.times import format_time
from ..dependencies import OnceDep, ReadStore, ServiceDep, WriteStore, audited_write, make_router
from ..idempotency import Ids
from ..problems import translate_input_errors
from ..schemas import conversations as schemas
from ..schemas.base import PageQuery, json_response
from ..schemas.operations import query_model, request_from
from ..schemas.problems import problems
from ..schemas.searches import ConversationSearchRequest, ConversationSearchResponse
from .described import DescribedList, add_read, add_route, require_owner
from .searches import add_search, serialize_search
from .shared import (
    CREATED,
    ConversationId,
    Wait,
    allow_only,
    check_message_count,
    check_page_size,
    long_json_response,
    message_dicts,
    receipt_response,
    require_found,
    set_audit_target,
)

router = make_router("conversations")
allow_only(router, "POST", "/v1/conversations/search")
add_search(
    router,
    SearchConversations,
    ConversationSearchRequest,
    ConversationSearchResponse,
    serialize_search,
)


@router.post(
    "/v1/conversations",
    operation_id="conversations.create",
    summary="Save a conversation",
    status_code=201,
    response_model=schemas.ConversationSaved,
    responses=CREATED | problems("create", "not_found"),
)
async def create_conversation(
    body: schemas.NewConversation,
    request: Request,
    store: WriteStore,
    service: ServiceDep,
    once: OnceDep,
    wait: Wait = None,
) -> Response:
    """The messages are stored when this responds. Learning starts at once, in the background.

    With `wait` the response is sent when learning is done, or after that many seconds.
    """
    check_message_count(service, body.messages)

    async def make(ids: Ids) -> dict[str, Any]:
        ids.about(body.user_id)
        conversation_id = body.conversation_id or ids("conversation")
        with translate_input_errors():
            async with audited_write(request, "conversation", conversation_id):
                saved = await store.record_conversation(
                    body.agent_id,
                    body.user_id,
                    message_dicts(body.messages, ids),
                    session_id=body.session_id,
                    conversation_id=conversation_id,
                    memory_id=body.memory_id,
                    created_at=body.created_at,
                    metadata=body.metadata,
                    tags=body.tags,
                )
        made.append(saved)
        return {"conversation_id": saved.conversation_id}

    made: list[Conversation] = []
    result = await once(make)
    saved = _serialize_saved(made[0]) if made else await _read_saved(store, result["conversation_id"])
    learned = {}
    if wait is not None:
        learned = {"learned": await store.wait_until_learned(body.agent_id, body.user_id, timeout=wait)}
    return _saved_response(saved, len(body.messages), learned)


def _serialize_saved(saved: Conversation) -> dict[str, Any]:
    return {
        "conversation_id": saved.conversation_id,
        "session_id": saved.session_id,
        "created_at": format_time(saved.created_at),
    }


async def _read_saved(store: ReadStore, conversation_id: str) -> dict[str, Any]:
    """The conversation that an earlier request with the same key made; `not_found` if erased since."""
    outline = require_found(await store.get_conversation_outline(conversation_id), "conversation")
    return {name: outline[name] for name in ("conversation_id", "session_id", "created_at")}


def _saved_response(saved: dict[str, Any], count: int, learned: dict[str, bool]) -> Response:
    body = {
        "success": True,
        "message": "Conversation saved successfully",
        **saved,
        "message_count": count,
        **learned,
    }
    location = f"/v1/conversations/{quote(saved['conversation_id'], safe='')}"
    return json_response(body, 201, {"Location": location})


async def _get_conversation(conversation_id: str, store: MemoryStore) -> Response:
    with translate_input_errors():
        outline = require_found(await store.get_conversation_outline(conversation_id), "conversation")
        conversation = require_found(await store.get_conversation(conversation_id), "conversation")
    return await long_json_response(
        partial(_serialize_conversation, outline, conversation), conversation.turn_count
    )


add_route(router, GetConversation, _get_conversation, schemas.ConversationPayload)


@router.put(
    "/v1/conversations/{conversation_id}",
    operation_id="conversations.open",
    summary="Open a conversation",
    response_model=schemas.ConversationPayload,
    responses=problems("send", "conflict"),
)
async def open_conversation(
    conversation_id: ConversationId, body: schemas.OpenedConversation, request: Request, store: WriteStore
) -> Response:
    """Open a conversation that has no messages yet. One that exists is returned unchanged.

    A conversation of another agent or user under this id is a conflict.
    """
    set_audit_target(request, "conversation", conversation_id)
    with translate_input_errors():
        opened = await store.open_conversation(
            **{name: getattr(body, name) for name in schemas.OpenedConversation.model_fields},
            conversation_id=conversation_id,
        )
        outline = require_found(await store.get_conversation_outline(conversation_id), "conversation")
    return await long_json_response(partial(_serialize_conversation, outline, opened), opened.turn_count)


def _serialize_conversation(outline: dict[str, Any], conversation: Conversation) -> dict[str, Any]:
    return {**_serialize_outline(outline), **conversation.to_dict()}


@router.delete(
    "/v1/conversations/{conversation_id}",
    operation_id="conversations.delete",
    summary="Erase a conversation",
    response_model=schemas.ReceiptPayload,
    responses=problems("read", "not_found", "conflict"),
)
async def delete_conversation(
    conversation_id: ConversationId, request: Request, store: WriteStore, service: ServiceDep
) -> Response:
    """Erase a conversation and everything learned from it. The receipt contains no personal data."""
    set_audit_target(request, "conversation", conversation_id)
    with translate_input_errors():
        require_found(await store.get_conversation_outline(conversation_id), "conversation")
        await service.provider.forget(
            [conversation_id]
        )  # first, while the id of the provider's copy is still stored here
        receipt = await store.erase_conversation(conversation_id)
    return receipt_response(receipt, "conversation")


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
    """A closed conversation takes no more messages. Learning from its remaining messages starts at once.

    Closing it again changes nothing.
    """
    set_audit_target(request, "conversation", conversation_id)
    with translate_input_errors():
        require_found(await store.close_conversation(conversation_id), "conversation")
        outline = require_found(await store.get_conversation_outline(conversation_id), "conversation")
    return json_response(_serialize_outline(outline))


def _serialize_outline(outline: dict[str, Any]) -> dict[str, Any]:
    return {name: outline[name] for name in schemas.ConversationOutline.model_fields}


add_read(
    router,
    GetConversationOutline,
    schemas.ConversationOutline,
    _serialize_outline,
    "There is no conversation with this id.",
)
_LISTED = DescribedList(ListConversations, _serialize_outline)


async def _list_conversations(
    query: PageQuery, request: Request, store: MemoryStore, service: ServiceDep
) -> Response:
    """Read a plain list by itself: it is faster, and none of its pages is short."""
    require_owner(FindConversations.route, request, query)
    with translate_input_errors():
        limit, before = check_page_size(service, query.limit), _LISTED.pages.read_position(query.cursor)
        wanted = request_from(FindConversations, query, before=before, limit=limit)
        if wanted.words is None and (wanted.agent_id is None) == (wanted.user_id is None):
            return await _LISTED.respond(query, request, store, service)
        page = await store.perform(wanted)
    next_cursor = None if page.position is None else make_cursor("conversations", page.position)
    return json_response(
        {"items": list(map(_serialize_outline, page.conversations)), "next_cursor": next_cursor}
    )


add_route(
    router,
    FindConversations,
    _list_conversations,
    schemas.ConversationPage,
    query=Annotated[query_model(PageQuery, FindConversations), Query()],
)
