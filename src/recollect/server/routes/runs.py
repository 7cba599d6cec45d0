"""Runs: the progress of learning, and its failures."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Query, Request, Response

from ...memory.operations.lists import ListNewestRuns, ListRuns
from ...memory.operations.runs import GetRun, RetryRun
from ...memory.run import Run
from ...memory.store import MemoryStore
from ..dependencies import ReadStore, ServiceDep, make_router
from ..problems import translate_input_errors
from ..schemas import runs as schemas
from ..schemas.base import json_response
from ..schemas.operations import query_model
from ..schemas.problems import problems
from .described import DescribedList, add_read, add_route, require_owner
from .shared import (
    invalid_field,
    require_found,
    set_audit_target,
)

router = make_router("runs")

_LISTS = {
    "id": DescribedList(ListRuns, Run.to_dict),
    "newest": DescribedList(ListNewestRuns, Run.to_dict),
}


async def _list_runs(
    query: schemas.RunOrder, request: Request, store: MemoryStore, service: ServiceDep
) -> Response:
    require_owner(ListRuns.route, request, query)
    return await _LISTS[query.order].respond(query, request, store, service)


add_route(
    router,
    ListRuns,
    _list_runs,
    schemas.RunPage,
    query=Annotated[query_model(schemas.RunOrder, ListRuns), Query()],
)


add_read(router, GetRun, schemas.RunPayload, Run.to_dict, "There is no run with this id.")


async def _retry_run(run_id: str, request: Request, store: MemoryStore) -> Response:
    set_audit_target(request, "run", run_id)
    with translate_input_errors():
        require_found(await store.get_run(run_id), "run")
        await store.retry_run(run_id)
        return json_response(require_found(await store.get_run(run_id), "run").to_dict())


add_route(router, RetryRun, _retry_run, schemas.RunPayload)


@router.get(
    "/v1/coverage",
    operation_id="coverage.get",
    summary="Read the coverage of learning",
    response_model=schemas.CoverageResponse,
    responses=problems("read"),
)
async def get_coverage(query: Annotated[schemas.CoverageQuery, Query()], store: ReadStore) -> Response:
    """How many conversations are remembered, pending and failed, for the tenant, a user or an agent.

    With `wait` the response is sent when the user's conversations are learned, or after that many seconds.
    """
    learned = {}
    with translate_input_errors():
        if query.wait is not None:
            if query.user_id is None:
                raise invalid_field("query.wait", "needs a user_id")
            done = await store.wait_until_learned(query.agent_id, query.user_id, timeout=query.wait)
            learned = {"learned": done}
        coverage = await store.coverage(query.agent_id, query.user_id)
    behind = await store.monitor.seconds_behind(store.tenant) if coverage.pending else 0.0
    counts = {**asdict(coverage), "share": coverage.share, "behind_seconds": round(behind, 3)}
    return json_response({**counts, **learned})
