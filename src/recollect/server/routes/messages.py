"""The messages of a conversation."""

import math
from typing import Annotated, Any

from fastapi import Query, Request, Response

from ...memory.conversation import Message
from ..dependencies import OnceDep, ReadStore, ServiceDep, WriteStore, make_router
from ..idempotency import Ids
from ..problems import Problem, translate_input_errors
from ..schemas import conversations as schemas
from ..schemas.base import json_response
from ..schemas.problems import problems
from .shared import (
    CLOSED,
    ConversationId,
    MessageId,
    Pages,
    check_message_count,
    check_page_size,
    invalid_field,
    message_dicts,
    receipt_response,
    require_found,
    set_audit_target,
)

router = make_router("conversations")

_PAGES: Pages[Message] = Pages("messages", lambda row: row.message_index, Message.to_dict, int)


@router.post(
    "/v1/conversations/{conversation_id}/messages",
    operation_id="messages.append",
    summary="Append messages to a conversation",
    status_code=201,
    response_model=schemas.MessagesAdded,
    responses=problems("create", "not_found", "conversation_closed"),
)
async def append_messages(
    conversation_id: ConversationId,
    body: schemas.MoreMessages,
    request: Request,
    store: WriteStore,
    service: ServiceDep,
    once: OnceDep,
) -> Response:
    """Learning starts at once, or after `learn_after` seconds of quiet, from the new messages only.

    Appending messages again under the same `message_id`s changes nothing.
    """
    check_message_count(service, body.messages)
    set_audit_target(request, "conversation", conversation_id)
    added: list[Message] = []

    async def make(ids: Ids) -> dict[str, Any]:
        ids.about(await _check_open(store, conversation_id, body))
        with translate_input_errors():
            added.extend(
                await store.append_messages(
                    conversation_id,
                    message_dicts(body.messages, ids),
                    learn_after=body.learn_after if body.learn else math.inf,
                    even_if_closed=body.even_if_closed,
                )
            )
        return {"first_index": added[0].message_index}

    result = await once(make)
    if not added:
        added += await _read_again(store, conversation_id, result["first_index"], len(body.messages))
    messages = [message.to_dict() for message in added]
    return json_response({"conversation_id": conversation_id, "messages": messages}, 201)


async def _check_open(store: WriteStore, conversation_id: str, body: schemas.MoreMessages) -> str:
    """The user of an open conversation. Raises a `Problem` if it is missing or closed."""
    with translate_input_errors():
        outline = require_found(await store.get_conversation_outline(conversation_id), "conversation")
    if outline["closed_at"] is not None and not body.even_if_closed:
        raise Problem("conversation_closed", CLOSED)
    return str(outline["user_id"])


async def _read_again(store: WriteStore, conversation_id: str, first_index: int, count: int) -> list[Message]:
    """The messages that an earlier request with the same key added, except those erased since."""
    with translate_input_errors():
        rows = await store.list_messages(conversation_id, after=first_index - 1, limit=count)
    return [row for row in require_found(rows, "conversation") if row.message_index < first_index + count]


@router.get(
    "/v1/conversations/{conversation_id}/messages",
    operation_id="messages.list",
    summary="List the messages of a conversation",
    response_model=schemas.MessagePage,
    responses=problems("read", "not_found"),
)
async def list_messages(
    conversation_id: ConversationId,
    query: Annotated[schemas.MessageQuery, Query()],
    store: ReadStore,
    service: ServiceDep,
) -> Response:
    """Messages in order: from the first one, from `from_index`, or around a message."""
    limit = check_page_size(service, query.limit)
    after = _first_index(query) - 1
    with translate_input_errors():
        rows = require_found(
            await store.list_messages(conversation_id, after=after, around=query.around, limit=limit + 1),
            "conversation",
        )
    if query.around is not None and not rows:
        raise Problem("not_found", "There is no message with this id.")
    return json_response(_PAGES.make_page(rows, limit))


def _first_index(query: schemas.MessageQuery) -> int:
    """The index of the first message of a page."""
    given = {name for name in ("cursor", "from_index", "around") if getattr(query, name) is not None}
    if len(given) > 1:
        raise invalid_field(f"query.{max(given)}", f"cannot be given together with {min(given)}")
    if query.cursor is not None:
        return int(_PAGES.read_position(query.cursor)) + 1
    return query.from_index or 0


@router.delete(
    "/v1/conversations/{conversation_id}/messages/{message_id:path}",
    operation_id="messages.delete",
    summary="Erase a message",
    response_model=schemas.ReceiptPayload,
    responses=problems("read", "not_found", "conflict"),
)
async def delete_message(
    conversation_id: ConversationId, message_id: MessageId, request: Request, store: WriteStore
) -> Response:
    """Erase a message and everything learned from it. Entries that it had superseded become current again."""
    set_audit_target(request, "conversation", conversation_id)
    with translate_input_errors():
        require_found(await store.get_conversation_outline(conversation_id), "conversation")
        receipt = await store.erase_message(conversation_id, message_id)
    return receipt_response(receipt, "message")
