"""Search entries, and recall them for a prompt."""

from collections.abc import Sequence
from typing import Any

from fastapi import Response

from ...memory.hits import MemoryHit, MemorySearch, TurnHit, TurnSearch
from ...memory.prompting import PromptOptions, PromptOwner, conversation_key, prompts_of, turn_key
from ...memory.store import MemoryStore
from ...memory.times import format_time, now
from ..dependencies import ReadStore, ServiceDep, make_router
from ..problems import translate_input_errors
from ..schemas import searches as schemas
from ..schemas.base import json_response
from ..schemas.problems import problems
from .shared import Wait, allow_only, check_hit_limit

router = make_router("memories")
allow_only(router, "POST", "/v1/memories/search")
allow_only(router, "POST", "/v1/memories/recall")
allow_only(router, "POST", "/v1/memories/prompt")


def serialize_hits(hits: Sequence[MemoryHit] | Sequence[TurnHit], explain: bool) -> list[dict[str, Any]]:
    """The JSON of hits; with the parts of their scores only if `explain` is set."""
    serialized = [hit.to_dict() for hit in hits]
    if not explain:
        for hit in serialized:
            del hit["parts"]
    return serialized


def serialize_search(search: MemorySearch | TurnSearch, explain: bool) -> dict[str, Any]:
    """The JSON of a search."""
    return {
        "items": serialize_hits(search.hits, explain),
        "relevance": search.relevance,
        "warnings": list(search.warnings),
    }


async def wait_until_learned(store: MemoryStore, body: schemas.OwnedSearch, wait: float | None) -> None:
    """Wait at most `wait` seconds until everything recorded for the owner of a search is learned."""
    if wait is not None:
        await store.wait_until_learned(body.agent_id, body.user_id, timeout=wait)


@router.post(
    "/v1/memories/search",
    operation_id="memories.search",
    summary="Search entries",
    response_model=schemas.MemorySearchResponse,
    responses=problems("send"),
    openapi_extra={"x-audited": False},
)
async def search_memories(
    body: schemas.MemorySearchRequest, store: ReadStore, service: ServiceDep, wait: Wait = None
) -> Response:
    """The entries that match a query best, by words and by meaning, of one agent or all of a user.

    `warnings` say if conversations are not learned yet, or texts have no vectors yet.
    """
    limit = check_hit_limit(service, body.limit)
    await wait_until_learned(store, body, wait)
    with translate_input_errors():
        search = await store.search_memories(
            body.query,
            body.agent_id,
            body.user_id,
            limit=limit,
            content_type=body.content_type,
            as_of=body.as_of,
            min_score=body.min_score,
            min_relevance=body.min_relevance,
            **body.filters(),
        )
    return json_response(serialize_search(search, body.explain))


@router.post(
    "/v1/memories/recall",
    operation_id="memories.recall",
    summary="Recall for a prompt",
    response_model=schemas.RecallResponse,
    responses=problems("send"),
    openapi_extra={"x-audited": False},
)
async def recall(body: schemas.RecallRequest, store: ReadStore, wait: Wait = None) -> Response:
    """What is remembered about a query, as a block of text for a prompt, within a token budget."""
    await wait_until_learned(store, body, wait)
    with translate_input_errors():
        recalled = await store.recall(
            body.query,
            body.agent_id,
            body.user_id,
            budget=body.budget,
            min_relevance=body.min_relevance,
            **body.filters(),
        )
    return json_response(
        {
            "text": recalled.text,
            "instructions": [entry.to_dict() for entry in recalled.instructions],
            "entries": serialize_hits(recalled.entries, body.explain),
            "turns": serialize_hits(recalled.turns, body.explain),
            "lines": [line.to_dict() for line in recalled.lines],
            "now": format_time(recalled.block.now or now()),
            "warnings": list(recalled.warnings),
        }
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
