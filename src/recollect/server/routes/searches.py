"""Search entries and messages, and recall them for a prompt."""

from collections.abc import Callable, Sequence
from typing import Any

from fastapi import APIRouter, Response

from ...memory.hits import MemoryHit, MemorySearch, Recalled, TurnHit, TurnSearch
from ...memory.operations.search import Recall, SearchConversations, SearchMemories
from ...memory.store import MemoryStore
from ...memory.times import format_time, now
from ..dependencies import ServiceDep, make_router
from ..problems import translate_input_errors
from ..schemas import searches as schemas
from ..schemas.base import ResponseBody, json_response
from ..schemas.operations import request_from
from .described import add_route
from .shared import Wait, allow_only, check_hit_limit

router = make_router("memories")
allow_only(router, "POST", "/v1/memories/search")
allow_only(router, "POST", "/v1/memories/recall")


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
    operation: type[SearchMemories] | type[SearchConversations] | type[Recall],
    body_model: type[schemas.ExplainedSearch],
    response_model: type[ResponseBody],
    serialize: Callable[[Any, bool], dict[str, Any]],
) -> None:
    """Add the route of a search. With `wait`, it first waits until what was recorded is learned."""

    has_limit = "limit" in body_model.model_fields

    async def search(
        body: schemas.ExplainedSearch, store: MemoryStore, service: ServiceDep, wait: Wait = None
    ) -> Response:
        limit = getattr(body, "limit", None)
        given = {"limit": check_hit_limit(service, limit)} if has_limit else {}
        with translate_input_errors():
            request = request_from(operation, body, **given)
            if wait is not None:
                await store.wait_until_learned(request.agent_id, request.user_id, timeout=wait)
            found = await store.perform(request)
        return json_response(serialize(found, body.explain))

    add_route(router, operation, search, response_model, body=body_model)


add_search(
    router, SearchMemories, schemas.MemorySearchRequest, schemas.MemorySearchResponse, serialize_search
)
add_search(router, Recall, schemas.RecallRequest, schemas.RecallResponse, _serialize_recalled)
