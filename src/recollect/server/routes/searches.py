"""Searching what is known, and recalling it for a prompt."""

from collections.abc import Sequence
from typing import Any

from fastapi import Response

from ...memory.hits import MemoryHit, TurnHit
from ...memory.store import MemoryStore
from ..dependencies import ReadStore, ServiceDep, make_router
from ..problems import refused_input
from ..schemas import searches as schemas
from ..schemas.base import answer_json
from ..schemas.problems import problems
from .shared import Wait, allow_only, check_hit_limit

router = make_router("memories")
allow_only(router, "POST", "/v1/memories/search")
allow_only(router, "POST", "/v1/memories/recall")


def tell_hits(hits: Sequence[MemoryHit] | Sequence[TurnHit], explain: bool) -> list[dict[str, Any]]:
    """Hits as JSON tells them; the parts of their scores only if they were asked for."""
    told = [hit.to_dict() for hit in hits]
    if not explain:
        for each in told:
            del each["parts"]
    return told


async def wait_if_asked(store: MemoryStore, body: schemas.OwnedQuestion, wait: float | None) -> None:
    """Wait so many seconds at most until all that was recorded of an agent and a user is learned."""
    if wait is not None:
        await store.wait_until_learned(body.agent_id, body.user_id, timeout=wait)


@router.post(
    "/v1/memories/search",
    operation_id="memories.search",
    summary="Search what is known",
    response_model=schemas.MemoriesFound,
    responses=problems("send"),
    openapi_extra={"x-audited": False},
)
async def search_memories(
    body: schemas.MemorySearchAsked, store: ReadStore, service: ServiceDep, wait: Wait = None
) -> Response:
    """The entries that answer a question best, by words and by meaning: of one agent or all of a user.

    `warnings` say if conversations are still to be learned from, or texts have no vectors yet.
    """
    limit = check_hit_limit(service, body.limit)
    await wait_if_asked(store, body, wait)
    with refused_input():
        search = await store.search_memories(
            body.query,
            body.agent_id,
            body.user_id,
            limit=limit,
            content_type=body.content_type,
            since=body.since,
            until=body.until,
            as_of=body.as_of,
        )
    return answer_json({"items": tell_hits(search.hits, body.explain), "warnings": list(search.warnings)})


@router.post(
    "/v1/memories/recall",
    operation_id="memories.recall",
    summary="Recall for a prompt",
    response_model=schemas.RecalledTold,
    responses=problems("send"),
    openapi_extra={"x-audited": False},
)
async def recall(body: schemas.RecallAsked, store: ReadStore, wait: Wait = None) -> Response:
    """What is remembered about a question, as a text that is at most so many tokens long."""
    await wait_if_asked(store, body, wait)
    with refused_input():
        recalled = await store.recall(body.query, body.agent_id, body.user_id, budget=body.budget)
    return answer_json(
        {
            "text": recalled.text,
            "entries": tell_hits(recalled.entries, body.explain),
            "turns": tell_hits(recalled.turns, body.explain),
            "warnings": list(recalled.warnings),
        }
    )
