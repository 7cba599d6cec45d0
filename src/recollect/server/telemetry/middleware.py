"""What is told of every request: its id, a line in the log, its metrics and its span."""

import logging
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..error_handlers import answer_problem
from ..problems import Problem
from .logs import begin_request, log_fault
from .metrics import UNMATCHED, Metrics
from .spans import request_span

_log = logging.getLogger("recollect.access")
_HEADER = "X-Request-Id"
_LEFT = 499  # the status of a request whose caller left before it was answered


class TelemetryMiddleware:
    """Goes around all that serves requests; a stream is being served until it ends."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, and tell of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        answer = _Answer(send, begin_request(headers.get(_HEADER)))
        began = time.perf_counter()
        with self._metrics.in_flight(), request_span(scope["method"], scope["scheme"], headers) as span:
            try:
                await self._serve(scope, receive, answer)
            finally:
                route = _route_of(scope)
                span.answered(scope["method"], route, answer.status)
                self._tell(scope, route or UNMATCHED, answer, time.perf_counter() - began)

    async def _serve(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        try:
            await self._app(scope, receive, answer.send)
        except Exception as error:  # noqa: BLE001 - the request ends here; its caller and the log are told
            log_fault(error)
            # An answer that has begun is left unfinished: the connection is closed, and the caller sees that.
            if not answer.has_begun:
                problem = Problem("internal_error", "the request could not be served")
                await answer_problem(problem)(scope, receive, answer.send)

    def _tell(self, scope: Scope, route: str, answer: "_Answer", seconds: float) -> None:
        method, caller = scope["method"], scope.get("state", {}).get("caller")
        self._metrics.count_request(method, route, answer.status, seconds)
        told = {
            "method": method,
            "route": route,
            "status": answer.status,
            "duration_ms": round(seconds * 1000, 2),
            "tenant": getattr(caller, "tenant", None),
            "key_id": getattr(caller, "key_id", None),
            "request_id": answer.request_id,
        }
        _log.info("request", extra={name: value for name, value in told.items() if value is not None})


class _Answer:
    """Sends an answer, with the id of its request, and knows how far it has come."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self.request_id = request_id
        self.status = _LEFT
        self.has_begun = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            self.status = message["status"]
            MutableHeaders(scope=message)[_HEADER] = self.request_id
        await self._send(message)


def _route_of(scope: Scope) -> str | None:
    """The template of the route; a path may hold the ids of users, and there are endless ones."""
    path = getattr(scope.get("route"), "path", None)
    return path if isinstance(path, str) else None
