"""Runs: how far the learning has come, and what went wrong."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated

from fastapi import Query, Request, Response

from ...memory.run import Run
from ..cursors import read_cursor
from ..dependencies import Reader, ReadStore, ServiceDep, WriteStore, make_router
from ..problems import refused_input
from ..schemas import runs as schemas
from ..schemas.base import answer_json
from ..schemas.problems import problems
from .shared import RunId, check_page_size, found, need_admin_beyond_one_user, note_target, page_of

router = make_router("runs")

# The kind of cursor of each order, and where a run stands in it.
_ORDERS: dict[str, tuple[str, Callable[[Run], str]]] = {
    "id": ("runs", lambda run: run.run_id),
    "newest": ("newest runs", lambda run: run.position),
}


@router.get(
    "/v1/runs",
    operation_id="runs.list",
    summary="List runs",
    response_model=schemas.RunPage,
    responses=problems("read"),
)
async def list_runs(
    query: Annotated[schemas.RunQuery, Query()], caller: Reader, store: ReadStore, service: ServiceDep
) -> Response:
    """All of them, or those with a status. Without a `conversation_id` it needs the scope admin."""
    need_admin_beyond_one_user(caller, query.conversation_id)
    limit = check_page_size(service, query.limit)
    kind, place = _ORDERS[query.order]
    edge = query.cursor and read_cursor(kind, query.cursor, str)[0]
    read = store.list_newest_runs if query.order == "newest" else store.list_runs
    with refused_input():
        runs = await read(query.status, query.conversation_id, edge, limit + 1)
    return answer_json(page_of(runs, limit, kind, place, Run.to_dict))


@router.get(
    "/v1/runs/{run_id}",
    operation_id="runs.get",
    summary="Read a run",
    response_model=schemas.RunTold,
    responses=problems("read", "not_found"),
)
async def get_run(run_id: RunId, store: ReadStore) -> Response:
    """With its finished stages, and its failures with what the model said."""
    with refused_input():
        return answer_json(found(await store.get_run(run_id), "run").to_dict())


@router.post(
    "/v1/runs/{run_id}/retry",
    operation_id="runs.retry",
    summary="Try a failed run again",
    response_model=schemas.RunTold,
    responses=problems("send", "not_found", "conflict"),
)
async def retry_run(run_id: RunId, request: Request, store: WriteStore) -> Response:
    """From the stage at which it failed. A run that has not failed is a conflict."""
    note_target(request, "run", run_id)
    with refused_input():
        found(await store.get_run(run_id), "run")
        await store.retry_run(run_id)
        return answer_json(found(await store.get_run(run_id), "run").to_dict())


@router.get(
    "/v1/coverage",
    operation_id="coverage.get",
    summary="Read how much is remembered",
    response_model=schemas.CoverageTold,
    responses=problems("read"),
)
async def get_coverage(query: Annotated[schemas.CoverageQuery, Query()], store: ReadStore) -> Response:
    """How many conversations are remembered, pending and failed: of the tenant, a user, or an agent."""
    with refused_input():
        coverage = await store.coverage(query.agent_id, query.user_id)
    return answer_json({**asdict(coverage), "share": coverage.share})
