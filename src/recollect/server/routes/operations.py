"""Liveness, readiness and metrics. These routes need no key."""

import json

from fastapi import APIRouter, Request, Response
from starlette.datastructures import State
from starlette.responses import PlainTextResponse

from ..health import Readiness, worst_state
from ..problems import MEDIA_TYPE, Problem
from ..service import Service
from ..telemetry.collector import MetricsCollector
from ..telemetry.logs import current_request_id
from ..telemetry.metrics import CONTENT_TYPE
from ..telemetry.processes import render_metrics

router = APIRouter(tags=["operations"])

_METRICS_OFF = "Metrics are off. The setting telemetry.metrics enables them."
_PARTS = {"database": {"state": "ready"}, "embedder": {"state": "degraded", "why": "failing"}}


@router.get(
    "/healthz",
    operation_id="operations.health",
    summary="Check that the process is alive",
    responses={
        200: {
            "description": "The process is alive.",
            "content": {"application/json": {"example": {"status": "alive"}}},
        }
    },
)
async def health() -> Response:
    """Checks no other part, not even the database: a process that answers needs no restart."""
    return _json(200, {"status": "alive"})


@router.get(
    "/readyz",
    operation_id="operations.readiness",
    summary="Check that requests can be served, part by part",
    responses={
        200: {
            "description": "Requests can be served. Degraded parts are named.",
            "content": {"application/json": {"example": {"status": "degraded", "parts": _PARTS}}},
        },
        503: {
            "description": "Requests cannot be served, or the service is stopping.",
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

    The service is not ready while the disk is full. It is degraded while the disk is nearly full or no worker
    is running.
    """
    parts = await _readiness(request.app.state).check()
    state = worst_state(parts)
    body = {"status": state, "parts": {name: part.to_dict() for name, part in parts.items()}}
    return _json(503 if state == "not_ready" else 200, body)


@router.get(
    "/metrics",
    operation_id="operations.metrics",
    summary="Read the metrics, for Prometheus",
    response_class=PlainTextResponse,
    responses={
        200: {
            "description": "The metrics in Prometheus's text format.",
            "content": {"text/plain": {"example": "recollect_requests_in_flight 1.0\n"}},
        },
        404: {
            "description": "The setting `telemetry.metrics` is off.",
            "content": {MEDIA_TYPE: {"example": Problem("not_found", _METRICS_OFF).document()}},
        },
    },
)
async def metrics(request: Request) -> Response:
    """No metric names a tenant or a user."""
    service = _service(request.app.state)
    if not service.settings.telemetry.metrics:
        document = Problem("not_found", _METRICS_OFF).document(current_request_id())
        return _json(404, document, MEDIA_TYPE)
    await _collector(request.app.state).refresh()
    rendered = await render_metrics(service.metrics, service.siblings)
    return Response(rendered, headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})


def _service(state: State) -> Service:
    service: Service = state.service
    return service


def _readiness(state: State) -> Readiness:
    if not hasattr(state, "readiness"):
        state.readiness = Readiness(_service(state))
    readiness: Readiness = state.readiness
    return readiness


def _collector(state: State) -> MetricsCollector:
    if not hasattr(state, "metrics_collector"):
        state.metrics_collector = MetricsCollector(_service(state))
    collector: MetricsCollector = state.metrics_collector
    return collector


def _json(status: int, body: object, media_type: str = "application/json") -> Response:
    return Response(json.dumps(body), status, {"Cache-Control": "no-store"}, media_type)
