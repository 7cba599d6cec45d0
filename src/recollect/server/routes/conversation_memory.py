"""How a conversation is shown to a model: its settings, and what comes of them."""

from contextlib import nullcontext
from typing import Annotated, Any

from fastapi import Query, Request, Response

from ...errors import ConflictError
from ...memory.conversation import ConversationSettings
from ...memory.store import MemoryStore
from ..dependencies import ReadStore, ServiceDep, WriteStore, make_router
from ..problems import refused_input
from ..schemas import conversation_parts as schemas
from ..schemas.base import answer_json
from ..schemas.problems import problems
from ..schemas.strategies import StrategyQuery
from .shared import (
    VERSIONED,
    ConversationId,
    IfMatch,
    answer_long,
    changed_since,
    check_match,
    find_conversation,
    found,
    note_target,
    tag_of,
)

router = make_router("conversations")


@router.get(
    "/v1/conversations/{conversation_id}/memory",
    operation_id="conversations.memory.get",
    summary="Read the memory settings of a conversation",
    response_model=schemas.MemorySettings,
    responses=VERSIONED | problems("read", "not_found"),
)
async def get_memory_settings(conversation_id: ConversationId, store: ReadStore) -> Response:
    """Its strategy, and whether memories are injected; null where the agent decides."""
    with refused_input():
        return _answer(found(await store.get_conversation_settings(conversation_id), "conversation"))


@router.patch(
    "/v1/conversations/{conversation_id}/memory",
    operation_id="conversations.memory.change",
    summary="Change the memory settings of a conversation",
    response_model=schemas.MemorySettings,
    responses=VERSIONED | problems("send", "not_found", "conflict", "precondition_failed"),
)
async def change_memory_settings(
    conversation_id: ConversationId,
    body: schemas.MemorySettingsChange,
    request: Request,
    store: WriteStore,
    if_match: IfMatch = None,
) -> Response:
    """Only the fields that are given change, and null clears one.

    With `If-Match` the change is made only if nobody has made another since.
    """
    note_target(request, "conversation", conversation_id)
    changes: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    if changes.get("memory_strategy") is not None:
        changes["memory_strategy"] = changes["memory_strategy"].to_config()
    if if_match is not None:
        changes["version"] = await _matching_version(store, conversation_id, if_match)
    with refused_input():
        return _answer(await _change(store, conversation_id, changes))


async def _matching_version(store: MemoryStore, conversation_id: str, if_match: str) -> int:
    with refused_input():
        settings = found(await store.get_conversation_settings(conversation_id), "conversation")
    check_match(if_match, settings.version)
    return settings.version


async def _change(store: MemoryStore, conversation_id: str, changes: dict[str, Any]) -> ConversationSettings:
    try:
        changed = await store.change_conversation_settings(conversation_id, **changes)
    except ConflictError as error:
        raise changed_since() from error
    return found(changed, "conversation")


def _answer(settings: ConversationSettings) -> Response:
    told = {name: getattr(settings, name) for name in schemas.MemorySettings.model_fields}
    return answer_json(told, headers=tag_of(settings.version))


@router.get(
    "/v1/conversations/{conversation_id}/view",
    operation_id="conversations.view",
    summary="See what the model would see",
    response_model=schemas.ViewTold,
    responses=problems("read", "not_found"),
)
async def view_conversation(
    conversation_id: ConversationId,
    query: Annotated[StrategyQuery, Query()],
    store: ReadStore,
    service: ServiceDep,
) -> Response:
    """The items of the chat under the strategy of the conversation, as the next turn would show them.

    With a `mode` and its knobs, as they would be shown under that strategy: it is tried out, and nothing is
    changed or kept, and no model is asked.
    """
    tried = query.to_config()
    conversation = await find_conversation(store, conversation_id)
    with refused_input():
        settings = found(await store.get_conversation_settings(conversation_id), "conversation")
    # A stored strategy that cannot be used is no mistake of the caller.
    with nullcontext() if tried is None else refused_input():
        items = await service.provider.looking.view_of(conversation, tried)
    told = {
        "conversation_id": conversation_id,
        "memory_strategy": settings.memory_strategy if tried is None else tried,
        "items": items,
    }
    return await answer_long(lambda: told, len(items))
