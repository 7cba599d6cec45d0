"""The base of every API of the provider server: it records requests, applies faults and checks keys."""

import json
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SECRETS = {"authorization", "api-key", "x-api-key", "cookie"}


@dataclass
class ApiError(Exception):
    """An error of an API. The dialect renders it in the format of the provider."""

    status: int
    message: str
    param: str | None = None
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str | None = None
    """The provider's error type, if the status does not imply it."""


class Dialect(Protocol):
    """How a provider authenticates requests, names them and reports errors."""

    @property
    def request_id_header(self) -> str:
        """The header with the request id of a response."""
        ...

    def key_of(self, headers: Headers) -> str | None:
        """Return the key of a request."""
        ...

    def error_body(self, error: ApiError, request_id: str | None = None) -> dict[str, Any]:
        """Return the body of an error response."""
        ...

    def wrong_key(self, key: str | None) -> ApiError:
        """Return the error for a wrong or missing key."""
        ...

    def too_long(self, tokens: int, limit: int) -> ApiError:
        """Return the error for a request that exceeds the context window."""
        ...

    def filtered(self) -> ApiError:
        """Return the error for content that the provider rejects."""
        ...

    def overloaded(self) -> ApiError:
        """Return the error for an overloaded provider."""
        ...


class Api(Protocol):
    """One API of a provider: its routes and its state."""

    dialect: Dialect
    path: str  # prefix of its routes

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes of the API."""
        ...

    def reset(self) -> None:
        """Reset all state."""
        ...


@dataclass(frozen=True)
class RecordedRequest:
    """A recorded request, without its secrets."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    """The JSON body, or `None`."""
    content: bytes = field(default=b"", repr=False)
    """The body as it was sent."""

    def matches(self, pattern: str) -> bool:
        """Whether it matches `POST /v1/things/*`: `*` is a method or a path segment, `**` any path."""
        method, path = pattern.split(" ", 1)
        return method in ("*", self.method) and _expression(path).fullmatch(self.path) is not None


@lru_cache(maxsize=256)
def _expression(path: str) -> re.Pattern[str]:
    return re.compile(re.escape(path).replace(r"\*\*", ".*").replace(r"\*", "[^/]+"), re.DOTALL)


class Gate:
    """The middleware of every request: record it, apply faults, check the key, respond."""

    def __init__(
        self,
        apis: Sequence[Api],
        api_key: str,
        record: Callable[[RecordedRequest], Sequence[Callable[[ASGIApp], ASGIApp]]],
        drop: Callable[[Any], None],
    ) -> None:
        self._apis = apis
        self._api_key = api_key
        self._record = record
        self._drop = drop
        self._app = Starlette(
            routes=[route for api in apis for route in api.routes()],
            exception_handlers={ApiError: _render_error, HTTPException: _render_error},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        body = await request.body()
        scope["dialect"] = self._dialect_of(request.url.path)
        scope["drop"] = lambda: self._drop(scope["client"])
        scope["request_id"] = f"req_{secrets.token_hex(12)}"
        scope["recorded"] = recorded = _recorded(request, body)
        app: ASGIApp = self._answer
        for fault in reversed(self._record(recorded)):
            app = fault(app)
        await app(scope, _repeating(body, receive), _naming_the_request(scope, send))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = scope["dialect"].key_of(Headers(scope=scope))
        if key == self._api_key:
            await self._app(scope, receive, send)
        else:
            await refusal(scope, scope["dialect"].wrong_key(key))(scope, receive, send)

    def _dialect_of(self, path: str) -> Dialect:
        """Return the dialect of the API that owns the path, or the first one."""
        return next((api.dialect for api in self._apis if path.startswith(api.path)), self._apis[0].dialect)


def refusal(scope: Scope, error: ApiError) -> Response:
    """Return an error response in the dialect of the API."""
    body = scope["dialect"].error_body(error, scope["request_id"])
    return JSONResponse(body, error.status, dict(error.headers))


async def json_body(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request; empty if there is no body."""
    try:
        body = json.loads(await request.body() or b"{}")
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise ApiError(400, "We could not parse the JSON body of your request.")
    return body


async def _render_error(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        error = ApiError(error.status_code, f"Invalid URL ({request.method} {request.url.path})")
    assert isinstance(error, ApiError)
    return refusal(request.scope, error)


def _recorded(request: Request, body: bytes) -> RecordedRequest:
    headers = {name: value for name, value in request.headers.items() if name not in _SECRETS}
    return RecordedRequest(
        request.method, request.url.path, dict(request.query_params), headers, _json_or_none(body), body
    )


def _json_or_none(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _naming_the_request(scope: Scope, send: Send) -> Send:
    """Add the request id header to every response."""

    async def named(message: Message) -> None:
        if message["type"] == "http.response.start":
            name = scope["dialect"].request_id_header
            MutableHeaders(scope=message)[name] = scope["request_id"]
        await send(message)

    return named


def _repeating(body: bytes, receive: Receive) -> Receive:
    """Replay a body that was already read."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def read() -> Message:
        return messages.pop() if messages else await receive()

    return read
