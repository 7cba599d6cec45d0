"""Details of a conversation: events, usage, runs, memory settings, and the view of the model."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Annotated, Any

from fastapi import Query, Request, Response

from ...errors import ConflictError
from ...memory.conversation import ConversationSettings
from ...memory.run import Run
from ...memory.store import MemoryStore
from ...memory.times import format_time
from ...sessions.events import ConversationEvent
from ..dependencies import ReadStore, ServiceDep, WriteStore, make_router
from ..problems import translate_input_errors
from ..schemas import conversation_details as schemas
from ..schemas.base import json_response
from ..schemas.problems import problems
from ..schemas.runs import RunOfPage, RunPage
from ..schemas.strategies import StrategyQuery
from .shared import (
    VERSIONED,
    ConversationId,
    IfMatch,
    Pages,
    changed_problem,
    check_if_match,
    check_page_size,
    etag_header,
    find_conversation,
    invalid_field,
    long_json_response,
    require_found,
    set_audit_target,
)

router = make_router("conversations")


@router.get(
    "/v1/conversations/{conversation_id}/events",
    operation_id="events.list",
    summary="List the events of a chat",
    response_model=schemas.EventPage,
    responses=problems("read", "not_found"),
)
async def list_events(
    conversation_id: ConversationId,
    query: Annotated[schemas.EventQuery, Query()],
    store: ReadStore,
    service: ServiceDep,
) -> Response:
    """Messages, tool calls and tool outputs, in order. The event log outlives changes to the session."""
    limit = check_page_size(service, query.limit)
    after = _position_before(query)
    conversation = await find_conversation(store, conversation_id)
    with translate_input_errors():
        events = await service.provider.inspector.events_of(conversation, after, limit + 1)
    return json_response(_EVENT_PAGES.make_page(events, limit))


def _position_before(query: schemas.EventQuery) -> int | None:
    """The sequence number before the first of a page; `None` for the first page."""
    if query.cursor is not None and query.from_sequence is not None:
        raise invalid_field("query.from_sequence", "cannot be given together with cursor")
    if query.cursor is not None:
        return int(_EVENT_PAGES.read_position(query.cursor))
    return query.from_sequence - 1 if query.from_sequence else None


def _serialize_event(event: ConversationEvent) -> dict[str, Any]:
    fields = {name: getattr(event, name) for name in schemas.EventPayload.model_fields}
    times = {name: format_time(fields[name]) for name in ("created_at", "ingested_at")}
    return {**fields, **times}


_EVENT_PAGES: Pages[ConversationEvent] = Pages(
    "events", lambda event: event.sequence_number, _serialize_event, int
)


@router.get(
    "/v1/conversations/{conversation_id}/usage",
    operation_id="usage.get",
    summary="Read the usage of a chat",
    response_model=schemas.ConversationUsage,
    responses=problems("read", "not_found"),
)
async def get_usage(conversation_id: ConversationId, store: ReadStore, service: ServiceDep) -> Response:
    """The tokens of a chat in total and by turn, and how each turn ended."""
    conversation = await find_conversation(store, conversation_id)
    with translate_input_errors():
        usage = await service.provider.inspector.usage_of(conversation)
    return json_response({"conversation_id": conversation_id, **usage})


_RUN_PAGES: Pages[Run] = Pages("runs", lambda run: run.run_id, Run.to_dict)


@router.get(
    "/v1/conversations/{conversation_id}/runs",
    operation_id="conversations.runs",
    summary="List the runs of a conversation",
    response_model=RunPage,
    responses=problems("read", "not_found"),
)
async def list_runs_of(
    conversation_id: ConversationId,
    query: Annotated[RunOfPage, Query()],
    store: ReadStore,
    service: ServiceDep,
) -> Response:
    """The runs that learn from a conversation, with their status."""

    async def read(after: str | None, limit: int) -> Sequence[Run]:
        await find_conversation(store, conversation_id)
        return await store.list_runs(conversation_id=conversation_id, after=after, limit=limit)

    return await _RUN_PAGES.respond(service, query, read)


# --- memory settings and view ---


@router.get(
    "/v1/conversations/{conversation_id}/memory",
    operation_id="conversations.memory.get",
    summary="Read the memory settings of a conversation",
    response_model=schemas.MemorySettings,
    responses=VERSIONED | problems("read", "not_found"),
)
async def get_memory_settings(conversation_id: ConversationId, store: ReadStore) -> Response:
    """The strategy, and whether memories are injected. Null means that the agent decides."""
    with translate_input_errors():
        return _settings_response(
            require_found(await store.get_conversation_settings(conversation_id), "conversation")
        )


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
    """Only the given fields change; null clears a field.

    With `If-Match` the change is made only if the settings have not changed since they were read.
    """
    set_audit_target(request, "conversation", conversation_id)
    changes: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    if changes.get("memory_strategy") is not None:
        changes["memory_strategy"] = changes["memory_strategy"].to_config()
    if if_match is not None:
        changes["version"] = await _matching_version(store, conversation_id, if_match)
    with translate_input_errors():
        return _settings_response(await _change(store, conversation_id, changes))


async def _matching_version(store: MemoryStore, conversation_id: str, if_match: str) -> int:
    with translate_input_errors():
        settings = require_found(await store.get_conversation_settings(conversation_id), "conversation")
    check_if_match(if_match, settings.version)
    return settings.version


async def _change(store: MemoryStore, conversation_id: str, changes: dict[str, Any]) -> ConversationSettings:
    try:
        changed = await store.change_conversation_settings(conversation_id, **changes)
    except ConflictError as error:
        raise changed_problem() from error
    return require_found(changed, "conversation")


def _settings_response(settings: ConversationSettings) -> Response:
    fields = {name: getattr(settings, name) for name in schemas.MemorySettings.model_fields}
    return json_response(fields, headers=etag_header(settings.version))


@router.get(
    "/v1/conversations/{conversation_id}/view",
    operation_id="conversations.view",
    summary="Preview the view of the model",
    response_model=schemas.ViewResponse,
    responses=problems("read", "not_found"),
)
async def view_conversation(
    conversation_id: ConversationId,
    query: Annotated[StrategyQuery, Query()],
    store: ReadStore,
    service: ServiceDep,
) -> Response:
    """The items that the model would see in the next turn, under the strategy of the conversation.

    `memories` is the page about the user that follows the instructions of the agent. `tail` is what is
    remembered about the newest message; it comes right after it, as an item of its own that is not stored.
    With a `mode` and its parameters, the view under that strategy instead. This is a dry run: nothing is
    stored, and no model is called.
    """
    tried = query.to_config()
    conversation = await find_conversation(store, conversation_id)
    with translate_input_errors():
        settings = require_found(await store.get_conversation_settings(conversation_id), "conversation")
    # If the stored strategy is invalid, the caller is not to blame: that stays an internal error.
    with nullcontext() if tried is None else translate_input_errors():
        items = await service.provider.inspector.view_of(conversation, tried)
        remembered = await service.provider.inspector.remembered_of(store, conversation, tried)
    body = {
        "conversation_id": conversation_id,
        "memory_strategy": settings.memory_strategy if tried is None else tried,
        "memories": remembered.page,
        "items": items,
        "tail": remembered.tail,
    }
    return await long_json_response(lambda: body, len(items))
