"""The messages of a conversation."""

from typing import Annotated, Any

from fastapi import Query, Request, Response

from ...memory.conversation import Message
from ..cursors import read_cursor
from ..dependencies import OnceDep, ReadStore, ServiceDep, WriteStore, make_router
from ..idempotency import Ids
from ..problems import Problem, refused_input
from ..schemas import conversations as schemas
from ..schemas.base import answer_json
from ..schemas.problems import problems
from .shared import (
    ConversationId,
    MessageId,
    answer_receipt,
    check_count,
    check_page_size,
    found,
    note_target,
    page_of,
    refused,
    tell_messages,
)

router = make_router("conversations")


@router.post(
    "/v1/conversations/{conversation_id}/messages",
    operation_id="messages.append",
    summary="Go on with a conversation",
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
    """The new messages alone are learned from, at once.

    The same messages under the same `message_id`s a second time change nothing.
    """
    check_count(service, body.messages)
    note_target(request, "conversation", conversation_id)
    placed: list[Message] = []

    async def make(ids: Ids) -> dict[str, Any]:
        ids.about(await _check_open(store, conversation_id))
        with refused_input():
            placed.extend(await store.append_messages(conversation_id, tell_messages(body.messages, ids)))
        return {"first_index": placed[0].message_index}

    kept = await once(make)
    if not placed:
        placed += await _read_again(store, conversation_id, kept["first_index"], len(body.messages))
    told = [message.to_dict() for message in placed]
    return answer_json({"conversation_id": conversation_id, "messages": told}, 201)


async def _check_open(store: WriteStore, conversation_id: str) -> str:
    """Whose conversation it is; a problem if it is not there, or closed."""
    with refused_input():
        outline = found(await store.get_conversation_outline(conversation_id), "conversation")
    if outline["closed_at"] is not None:
        raise Problem("conversation_closed", "nothing can be added to a conversation that is closed")
    return str(outline["user_id"])


async def _read_again(store: WriteStore, conversation_id: str, first_index: int, count: int) -> list[Message]:
    """What an earlier request with the same key has added, as far as it was not erased since."""
    with refused_input():
        rows = await store.list_messages(conversation_id, after=first_index - 1, limit=count)
    return [row for row in found(rows, "conversation") if row.message_index < first_index + count]


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
    """In the order in which they were said, from the first or a later one on, or around one."""
    limit = check_page_size(service, query.limit)
    after = _first_of(query) - 1
    with refused_input():
        rows = found(
            await store.list_messages(conversation_id, after=after, around=query.around, limit=limit + 1),
            "conversation",
        )
    if query.around is not None and not rows:
        raise Problem("not_found", "there is no message with this id")
    return answer_json(page_of(rows, limit, "messages", lambda row: row.message_index, Message.to_dict))


def _first_of(query: schemas.MessageQuery) -> int:
    """The place of the first message of a page."""
    given = {name for name in ("cursor", "from_index", "around") if getattr(query, name) is not None}
    if len(given) > 1:
        raise refused(f"query.{max(given)}", f"cannot be given together with {min(given)}")
    if query.cursor is not None:
        return int(read_cursor("messages", query.cursor, int)[0]) + 1
    return query.from_index or 0


@router.delete(
    "/v1/conversations/{conversation_id}/messages/{message_id:path}",
    operation_id="messages.delete",
    summary="Erase a message",
    response_model=schemas.ReceiptTold,
    responses=problems("read", "not_found", "conflict"),
)
async def delete_message(
    conversation_id: ConversationId, message_id: MessageId, request: Request, store: WriteStore
) -> Response:
    """With everything that was learned from it. What it had superseded comes back."""
    note_target(request, "conversation", conversation_id)
    with refused_input():
        found(await store.get_conversation_outline(conversation_id), "conversation")
        receipt = await store.erase_message(conversation_id, message_id)
    return answer_receipt(receipt, "message")
