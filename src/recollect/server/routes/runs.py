"""Runs: the progress of learning, and its failures."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Query, Request, Response

from ...memory.operations.lists import ListNewestRuns, ListRuns
from ...memory.run import Run
from ...memory.store import MemoryStore
from ..dependencies import ReadStore, ServiceDep, WriteStore, make_router
from ..problems import translate_input_errors
from ..schemas import runs as schemas
from ..schemas.base import json_response
from ..schemas.operations import query_model
from ..schemas.problems import problems
from .described import DescribedList, add_route, require_owner
from .shared import (
    RunId,
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


@router.get(
    "/v1/runs/{run_id}",
    operation_id="runs.get",
    summary="Read a run",
    response_model=schemas.RunPayload,
    responses=problems("read", "not_found"),
)
async def get_run(run_id: RunId, store: ReadStore) -> Response:
    """A run with its finished stages, and its failed attempts with the model's responses."""
    with translate_input_errors():
        return json_response(require_found(await store.get_run(run_id), "run").to_dict())


@router.post(
    "/v1/runs/{run_id}/retry",
    operation_id="runs.retry",
    summary="Retry a failed run",
    response_model=schemas.RunPayload,
    responses=problems("send", "not_found", "conflict"),
)
async def retry_run(run_id: RunId, request: Request, store: WriteStore) -> Response:
    """The run resumes at the stage that failed. Retrying a run that has not failed is a conflict."""
    set_audit_target(request, "run", run_id)
    with translate_input_errors():
        require_found(await store.get_run(run_id), "run")
        await store.retry_run(run_id)
        return json_response(require_found(await store.get_run(run_id), "run").to_dict())


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
