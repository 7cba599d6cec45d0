"""Search entries and messages, and recall them for a prompt."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from fastapi import APIRouter, Response

from ...memory.hits import MemoryHit, MemorySearch, Recalled, TurnHit, TurnSearch
from ...memory.operations.search import (
    Recall,
    SearchConversations,
    SearchConversationsOfUsers,
    SearchMemories,
    SearchMemoriesOfUsers,
)
from ...memory.prompting import PromptOptions, PromptOwner, conversation_key, prompts_of, turn_key
from ...memory.store import MemoryStore
from ...memory.times import format_time, now
from ..dependencies import ReadStore, ServiceDep, make_router
from ..problems import translate_input_errors
from ..schemas import searches as schemas
from ..schemas.base import ResponseBody, json_response
from ..schemas.operations import request_from
from ..schemas.problems import problems
from .described import add_route
from .shared import Wait, allow_only, check_hit_limit

router = make_router("memories")
allow_only(router, "POST", "/v1/memories/search")
allow_only(router, "POST", "/v1/memories/recall")
allow_only(router, "POST", "/v1/memories/prompt")


_OfOneUser: TypeAlias = SearchMemories | SearchConversations | Recall
_Search: TypeAlias = _OfOneUser | SearchMemoriesOfUsers | SearchConversationsOfUsers


def _serialize_hits(hits: Sequence[MemoryHit] | Sequence[TurnHit], explain: bool) -> list[dict[str, Any]]:
    """The JSON of hits; with the parts of their scores only if `explain` is set."""
    serialized = [hit.to_dict() for hit in hits]
    if not explain:
        for hit in serialized:
            del hit["parts"]
    return serialized


def serialize_search(search: MemorySearch | TurnSearch, explain: bool) -> dict[str, Any]:
    """The JSON of a search."""
    return {
        "items": _serialize_hits(search.hits, explain),
        "relevance": search.relevance,
        "warnings": list(search.warnings),
    }


def _serialize_recalled(recalled: Recalled, explain: bool) -> dict[str, Any]:
    return {
        "text": recalled.text,
        "instructions": [entry.to_dict() for entry in recalled.instructions],
        "entries": _serialize_hits(recalled.entries, explain),
        "turns": _serialize_hits(recalled.turns, explain),
        "lines": [line.to_dict() for line in recalled.lines],
        "now": format_time(recalled.block.now or now()),
        "warnings": list(recalled.warnings),
    }


def add_search(
    router: APIRouter,
    operation: type[_Search],
    body_model: type[schemas.ExplainedSearch],
    response_model: type[ResponseBody],
    serialize: Callable[[Any, bool], dict[str, Any]],
) -> None:
    """Add the route of a search. With `wait`, that of one user first waits until all is learned."""

    has_limit = "limit" in body_model.model_fields

    async def search(
        body: schemas.ExplainedSearch, store: MemoryStore, service: ServiceDep, wait: Wait = None
    ) -> Response:
        limit = getattr(body, "limit", None)
        given = {"limit": check_hit_limit(service, limit)} if has_limit else {}
        with translate_input_errors():
            request = request_from(operation, body, **given)
            if wait is not None and isinstance(request, _OfOneUser):
                await store.wait_until_learned(request.agent_id, request.user_id, timeout=wait)
            found = await store.perform(request)
        return json_response(serialize(found, body.explain))

    waiting = {} if issubclass(operation, _OfOneUser) else {"wait": None}
    add_route(router, operation, search, response_model, body=body_model, **waiting)


add_search(
    router, SearchMemories, schemas.MemorySearchRequest, schemas.MemorySearchResponse, serialize_search
)
add_search(router, Recall, schemas.RecallRequest, schemas.RecallResponse, _serialize_recalled)
add_search(
    router,
    SearchMemoriesOfUsers,
    schemas.UsersMemorySearchRequest,
    schemas.MemorySearchResponse,
    serialize_search,
)
add_search(
    router,
    SearchConversationsOfUsers,
    schemas.UsersConversationSearchRequest,
    schemas.ConversationSearchResponse,
    serialize_search,
)


@router.post(
    "/v1/memories/prompt",
    operation_id="memories.prompt",
    summary="Get what a prompt needs",
    response_model=schemas.PromptResponse,
    responses=problems("send"),
    openapi_extra={"x-audited": False},
)
async def prompt(body: schemas.PromptRequest, store: ReadStore, service: ServiceDep) -> Response:
    """What memory adds to a prompt, at two places, so that the prefix that a provider caches stays the same.

    The `page` about the user follows your own instructions, and stays the same while a conversation goes on.
    The `tail` comes right after the newest message of the user, and is not to be sent again in later turns.
    """
    said = body.said or [body.query]
    owner = PromptOwner(store, body.agent_id, body.user_id, body.conversation_id or conversation_key(said[0]))
    with translate_input_errors():
        parts = await prompts_of(service.memory).compose(
            owner,
            body.query,
            PromptOptions(body.page_budget, body.budget, body.refresh),
            is_start=body.is_start,
            turn=turn_key([*said, body.query]),
            seen=[*said, *body.answered],
        )
    return json_response(
        {
            "page": parts.page,
            "tail": parts.tail,
            "page_version": parts.page_version,
            "page_fixed_at": parts.fixed_at and format_time(parts.fixed_at),
            "lines": [line.to_dict() for line in parts.lines],
            "changed": list(parts.changed),
        }
    )
