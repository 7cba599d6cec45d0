"""Telemetry of every request: its id, access log line, metrics and span."""

import logging
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..error_handlers import problem_response
from ..problems import INTERNAL_ERROR, Problem
from .logs import begin_request, log_unexpected
from .metrics import UNMATCHED, Metrics
from .spans import request_span

_log = logging.getLogger("recollect.access")
_HEADER = "X-Request-Id"
_CLIENT_CLOSED_REQUEST = 499  # status of a request whose caller disconnected before the response


class TelemetryMiddleware:
    """The outermost middleware. A streamed response counts as being served until it ends."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request and record its telemetry."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        response = _Response(send, begin_request(headers.get(_HEADER)))
        began = time.perf_counter()
        with self._metrics.in_flight(), request_span(scope["method"], scope["scheme"], headers) as span:
            try:
                await self._serve(scope, receive, response)
            finally:
                route = _route_of(scope)
                span.set_response(scope["method"], route, response.status)
                self._record(scope, route or UNMATCHED, response, time.perf_counter() - began)

    async def _serve(self, scope: Scope, receive: Receive, response: "_Response") -> None:
        try:
            await self._app(scope, receive, response.send)
        except Exception as error:  # noqa: BLE001 - the request ends here: it is logged and answered with 500
            log_unexpected(error)
            # A response that has started stays incomplete: the connection is closed, which the caller sees.
            if not response.has_started:
                problem = Problem("internal_error", INTERNAL_ERROR)
                await problem_response(problem)(scope, receive, response.send)

    def _record(self, scope: Scope, route: str, response: "_Response", seconds: float) -> None:
        method, caller = scope["method"], scope.get("state", {}).get("caller")
        self._metrics.count_request(method, route, response.status, seconds)
        fields = {
            "method": method,
            "route": route,
            "status": response.status,
            "duration_ms": round(seconds * 1000, 2),
            "tenant": getattr(caller, "tenant", None),
            "key_id": getattr(caller, "key_id", None),
            "request_id": response.request_id,
        }
        _log.info("request", extra={name: value for name, value in fields.items() if value is not None})


class _Response:
    """Sends a response with the id of its request, and notes its status."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self.request_id = request_id
        self.status = _CLIENT_CLOSED_REQUEST
        self.has_started = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_started = True
            self.status = message["status"]
            # A proxied answer has the id of the provider, which its clients report; ours has another header.
            MutableHeaders(scope=message).setdefault(_HEADER, self.request_id)
        await self._send(message)


def _route_of(scope: Scope) -> str | None:
    """The path template of the matched route. The path itself may contain the id of a user."""
    path = getattr(scope.get("route"), "path", None)
    return path if isinstance(path, str) else None
