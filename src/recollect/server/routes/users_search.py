"""Search the entries and the messages of many users. Every search is audited."""

from fastapi import Response

from ..dependencies import AdminStore, ServiceDep, make_router
from ..problems import translate_input_errors
from ..schemas import searches as schemas
from ..schemas.base import json_response
from ..schemas.problems import problems
from .searches import serialize_search
from .shared import check_hit_limit

router = make_router("memories")


@router.post(
    "/v1/search/memories",
    operation_id="memories.search_users",
    summary="Search the entries of many users",
    response_model=schemas.MemorySearchResponse,
    responses=problems("send"),
)
async def search_memories_of_users(
    body: schemas.UsersMemorySearchRequest, store: AdminStore, service: ServiceDep
) -> Response:
    """The entries that match a query best, of all users of the tenant or of some. It needs the scope admin.

    In a file, a search covers at most 50,000 entries. PostgreSQL finds them by its indexes.
    """
    limit = check_hit_limit(service, body.limit)
    with translate_input_errors():
        search = await store.search_memories_of_users(
            body.query,
            body.user_ids,
            agent_id=body.agent_id,
            limit=limit,
            content_type=body.content_type,
            as_of=body.as_of,
            min_score=body.min_score,
            min_relevance=body.min_relevance,
            **body.filters(),
        )
    return json_response(serialize_search(search, body.explain))


@router.post(
    "/v1/search/conversations",
    operation_id="conversations.search_users",
    summary="Search the messages of many users",
    response_model=schemas.ConversationSearchResponse,
    responses=problems("send"),
)
async def search_conversations_of_users(
    body: schemas.UsersConversationSearchRequest, store: AdminStore, service: ServiceDep
) -> Response:
    """The messages that match a query best, of all users of the tenant or of some. It needs the scope admin.

    In a file, a search covers at most 50,000 messages. PostgreSQL finds them by its indexes.
    """
    limit = check_hit_limit(service, body.limit)
    with translate_input_errors():
        search = await store.search_conversations_of_users(
            body.query,
            body.user_ids,
            agent_id=body.agent_id,
            limit=limit,
            session_id=body.session_id,
            min_score=body.min_score,
            min_relevance=body.min_relevance,
            **body.filters(),
        )
    return json_response(serialize_search(search, body.explain))
