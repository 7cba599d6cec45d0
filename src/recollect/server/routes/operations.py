"""Whether the service lives, whether it can work, and what it measures. Nobody needs a key for these."""

import json

from fastapi import APIRouter, Request, Response
from starlette.datastructures import State
from starlette.responses import PlainTextResponse

from ..health import Readiness, state_of
from ..problems import MEDIA_TYPE, Problem
from ..service import Service
from ..telemetry.collector import Gathering
from ..telemetry.logs import current_request_id
from ..telemetry.metrics import CONTENT_TYPE

router = APIRouter(tags=["operations"])

_PARTS = {"database": {"state": "ready"}, "embedder": {"state": "degraded", "why": "failing"}}


@router.get(
    "/healthz",
    operation_id="operations.health",
    summary="Say that the process lives",
    responses={
        200: {
            "description": "It does.",
            "content": {"application/json": {"example": {"status": "alive"}}},
        }
    },
)
async def health() -> Response:
    """Nothing is looked at, not even the database: a process that answers need not be restarted."""
    return _json(200, {"status": "alive"})


@router.get(
    "/readyz",
    operation_id="operations.readiness",
    summary="Say whether requests can be served, part by part",
    responses={
        200: {
            "description": "They can; a part that is degraded is named.",
            "content": {"application/json": {"example": {"status": "degraded", "parts": _PARTS}}},
        },
        503: {
            "description": "They cannot, or will soon not be: the service is being stopped.",
            "content": {
                "application/json": {
                    "example": {
                        "status": "not_ready",
                        "parts": {"server": {"state": "not_ready", "why": "stopping"}},
                    }
                }
            },
        },
    },
)
async def readiness(request: Request) -> Response:
    """The parts are the server, the database, its disk and schema, the workers, embedder and provider.

    It is not ready while the disk is full, and degraded while the disk is nearly full or nothing learns.
    """
    parts = await _readiness(request.app.state).look()
    state = state_of(parts)
    told = {"status": state, "parts": {name: part.to_dict() for name, part in parts.items()}}
    return _json(503 if state == "not_ready" else 200, told)


@router.get(
    "/metrics",
    operation_id="operations.metrics",
    summary="Give the metrics to Prometheus",
    response_class=PlainTextResponse,
    responses={
        200: {
            "description": "In Prometheus's text format.",
            "content": {"text/plain": {"example": "recollect_requests_in_flight 1.0\n"}},
        },
        404: {
            "description": "The setting telemetry.metrics is off.",
            "content": {MEDIA_TYPE: {"example": Problem("not_found", "metrics are off").document()}},
        },
    },
)
async def metrics(request: Request) -> Response:
    """None of them tells of a tenant or a user."""
    service = _service(request.app.state)
    if not service.settings.telemetry.metrics:
        document = Problem("not_found", "metrics are off").document(current_request_id())
        return _json(404, document, MEDIA_TYPE)
    await _gathering(request.app.state).refresh()
    return Response(
        service.metrics.text(), headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"}
    )


def _service(state: State) -> Service:
    service: Service = state.service
    return service


def _readiness(state: State) -> Readiness:
    if not hasattr(state, "readiness"):
        state.readiness = Readiness(_service(state))
    found: Readiness = state.readiness
    return found


def _gathering(state: State) -> Gathering:
    if not hasattr(state, "gathering"):
        state.gathering = Gathering(_service(state))
    found: Gathering = state.gathering
    return found


def _json(status: int, told: object, media_type: str = "application/json") -> Response:
    return Response(json.dumps(told), status, {"Cache-Control": "no-store"}, media_type)
