"""What happened in a conversation, what it cost, and what was learned from it."""

from contextlib import nullcontext
from typing import Annotated, Any

from fastapi import Query, Request, Response

from ...errors import ConflictError
from ...memory.conversation import ConversationSettings
from ...memory.run import Run
from ...memory.store import MemoryStore
from ...memory.times import format_time
from ...sessions.events import ConversationEvent
from ..cursors import read_cursor
from ..dependencies import ReadStore, ServiceDep, WriteStore, make_router
from ..problems import refused_input
from ..schemas import conversation_details as schemas
from ..schemas.base import answer_json
from ..schemas.problems import problems
from ..schemas.runs import RunOfPage, RunPage
from ..schemas.strategies import StrategyQuery
from .shared import (
    VERSIONED,
    ConversationId,
    IfMatch,
    answer_long,
    changed_since,
    check_match,
    check_page_size,
    find_conversation,
    found,
    note_target,
    page_of,
    refused,
    tag_of,
)

router = make_router("conversations")


@router.get(
    "/v1/conversations/{conversation_id}/events",
    operation_id="events.list",
    summary="List what happened in a chat",
    response_model=schemas.EventPage,
    responses=problems("read", "not_found"),
)
async def list_events(
    conversation_id: ConversationId,
    query: Annotated[schemas.EventQuery, Query()],
    store: ReadStore,
    service: ServiceDep,
) -> Response:
    """Messages, calls of tools and their outputs, in their order; whatever becomes of the session."""
    limit = check_page_size(service, query.limit)
    after = _after_of(query)
    conversation = await find_conversation(store, conversation_id)
    with refused_input():
        events = await service.provider.inspector.events_of(conversation, after, limit + 1)
    return answer_json(page_of(events, limit, "events", lambda event: event.sequence_number, _tell_event))


def _after_of(query: schemas.EventQuery) -> int | None:
    """The sequence number that a page comes after."""
    if query.cursor is not None and query.from_sequence is not None:
        raise refused("query.from_sequence", "cannot be given together with cursor")
    if query.cursor is not None:
        return int(read_cursor("events", query.cursor, int)[0])
    return query.from_sequence - 1 if query.from_sequence else None


def _tell_event(event: ConversationEvent) -> dict[str, Any]:
    told = {name: getattr(event, name) for name in schemas.EventTold.model_fields}
    times = {name: format_time(told[name]) for name in ("created_at", "ingested_at")}
    return {**told, **times}


@router.get(
    "/v1/conversations/{conversation_id}/usage",
    operation_id="usage.get",
    summary="Read what a chat has cost",
    response_model=schemas.UsageTold,
    responses=problems("read", "not_found"),
)
async def get_usage(conversation_id: ConversationId, store: ReadStore, service: ServiceDep) -> Response:
    """Its tokens in all and turn by turn, and how each turn ended."""
    conversation = await find_conversation(store, conversation_id)
    with refused_input():
        usage = await service.provider.inspector.usage_of(conversation)
    return answer_json({"conversation_id": conversation_id, **usage})


@router.get(
    "/v1/conversations/{conversation_id}/runs",
    operation_id="conversations.runs",
    summary="List the runs over a conversation",
    response_model=RunPage,
    responses=problems("read", "not_found"),
)
async def list_runs_of(
    conversation_id: ConversationId,
    query: Annotated[RunOfPage, Query()],
    store: ReadStore,
    service: ServiceDep,
) -> Response:
    """How far learning from it has come."""
    limit = check_page_size(service, query.limit)
    after = query.cursor and read_cursor("runs", query.cursor, str)[0]
    await find_conversation(store, conversation_id)
    with refused_input():
        runs = await store.list_runs(conversation_id=conversation_id, after=after, limit=limit + 1)
    return answer_json(page_of(runs, limit, "runs", lambda run: run.run_id, Run.to_dict))


# --- memory settings and view ---


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
        items = await service.provider.inspector.view_of(conversation, tried)
    told = {
        "conversation_id": conversation_id,
        "memory_strategy": settings.memory_strategy if tried is None else tried,
        "items": items,
    }
    return await answer_long(lambda: told, len(items))
