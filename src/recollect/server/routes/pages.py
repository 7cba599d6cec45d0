"""Pages about users: what an agent knows, as a short text that changes only when an entry does."""

from typing import Annotated, Any, TypeAlias

from fastapi import Header, Query, Response

from ..dependencies import ReadStore, ServiceDep, make_router
from ..problems import translate_input_errors
from ..schemas import pages as schemas
from ..schemas.base import json_response
from ..schemas.problems import problems
from .shared import VERSIONED, allow_only, check_page_size, etag_header, names_version

router = make_router("memories")
allow_only(router, "GET", "/v1/memories/page")
allow_only(router, "GET", "/v1/memories/page/history")

_IfNoneMatch: TypeAlias = Annotated[
    str | None,
    Header(
        description="The `ETag` of the page that you have. The response is 304 if it is still the page.",
        max_length=1000,
        examples=['"a1a1a1a1a1a1a1a1"'],
    ),
]
_UNCHANGED: dict[int | str, dict[str, Any]] = {
    304: {"description": "The page is the one that `If-None-Match` names."}
}


@router.get(
    "/v1/memories/page",
    operation_id="memories.page",
    summary="Read the page about a user",
    response_model=schemas.UserPagePayload,
    responses=VERSIONED | _UNCHANGED | problems("read"),
)
async def get_page(
    query: Annotated[schemas.UserPageQuery, Query()],
    store: ReadStore,
    if_none_match: _IfNoneMatch = None,
) -> Response:
    """What an agent knows about a user, on one page, now or at an earlier time. Empty if nothing is known."""
    if query.wait is not None:
        await store.wait_until_learned(query.agent_id, query.user_id, timeout=query.wait)
    with translate_input_errors():
        page = await store.page(query.agent_id, query.user_id, budget=query.budget, as_of=query.as_of)
    headers = etag_header(page.version)
    if if_none_match is not None and names_version(if_none_match, page.version):
        return Response(status_code=304, headers=headers)
    return json_response(page.to_dict(), headers=headers)


@router.get(
    "/v1/memories/page/history",
    operation_id="memories.page_history",
    summary="List the versions of a page",
    response_model=schemas.PageHistory,
    responses=problems("read"),
)
async def get_page_history(
    query: Annotated[schemas.PageHistoryQuery, Query()], store: ReadStore, service: ServiceDep
) -> Response:
    """The newest versions of a page, the latest first. An erased fact is in none of them."""
    limit = check_page_size(service, query.limit)
    with translate_input_errors():
        pages = await store.page_history(query.agent_id, query.user_id, budget=query.budget, limit=limit)
    return json_response({"items": [page.to_dict() for page in pages]})
