"""What happened in a conversation, what it cost, and what was learned from it."""

from typing import Annotated, Any

from fastapi import Query, Response

from ...memory.run import Run
from ...memory.times import tell_time
from ...sessions.events import ConversationEvent
from ..cursors import read_cursor
from ..dependencies import ReadStore, ServiceDep, make_router
from ..problems import refused_input
from ..schemas import conversation_parts as schemas
from ..schemas.base import answer_json
from ..schemas.problems import problems
from ..schemas.runs import RunOfPage, RunPage
from .shared import ConversationId, check_page_size, find_conversation, page_of, refused

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
        events = await service.provider.looking.events_of(conversation, after, limit + 1)
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
    times = {name: tell_time(told[name]) for name in ("created_at", "ingested_at")}
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
        usage = await service.provider.looking.usage_of(conversation)
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
