"""The base of model APIs: scripted replies, as one document or streamed."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from .core import ApiError, Dialect, json_body
from .replies import Reply, ReplyScript, Scripted, tokens_in


class ScriptedApi:
    """An API with scripted replies. With an empty queue it returns an error that says so."""

    dialect: Dialect
    path: str

    def __init__(self) -> None:
        self._script = ReplyScript()
        self.context_window: int | None = None
        """The context window in estimated tokens. A larger request gets the provider's error."""

    # --- for tests ---

    def reply(self, *replies: Scripted) -> None:
        """Queue one reply per request: texts, replies, tool calls, errors, functions."""
        self._script.add(replies)

    def reply_always(self, scripted: Scripted) -> None:
        """Set the reply for an empty queue."""
        self._script.use_default(scripted)

    @property
    def replies_left(self) -> int:
        """The number of unused queued replies."""
        return len(self._script)

    def reset(self) -> None:
        """Clear all scripted replies."""
        self._script.clear()
        self.context_window = None

    # --- responses ---

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes of the API."""
        return [Route(self.path, self._answer, methods=["POST"])]

    async def _answer(self, request: Request) -> Response:
        body = await json_body(request)
        self.check(body, request.headers)
        self._check_size(body)
        reply = self._script.take(request.scope["recorded"])
        if body.get("stream"):
            return event_stream(self.events(body, reply))
        if reply.error is not None:
            raise reply.error
        return JSONResponse(self.whole(body, reply))

    def _check_size(self, body: dict[str, Any]) -> None:
        tokens = tokens_in(self.prompt(body))
        if self.context_window is not None and tokens > self.context_window:
            raise self.dialect.too_long(tokens, self.context_window)

    # --- to be implemented by each API ---

    def check(self, body: dict[str, Any], headers: Mapping[str, str]) -> None:
        """Raise an `ApiError` for an invalid request."""
        raise NotImplementedError

    def prompt(self, body: dict[str, Any]) -> Any:
        """Return the part of the request that the model reads."""
        raise NotImplementedError

    def whole(self, body: dict[str, Any], reply: Reply) -> dict[str, Any]:
        """Return the reply as one document."""
        raise NotImplementedError

    def events(self, body: dict[str, Any], reply: Reply) -> Iterator[bytes]:
        """Return the reply as server-sent events."""
        raise NotImplementedError


def event_stream(events: Iterator[bytes]) -> Response:
    """Return a streaming response."""

    async def each() -> AsyncIterator[bytes]:
        for event in events:
            yield event

    return StreamingResponse(each(), media_type="text/event-stream")


def event(data: Any, name: str | None = None) -> bytes:
    """Format a server-sent event, with or without a name."""
    head = "" if name is None else f"event: {name}\n"
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"{head}data: {text}\n\n".encode()


def require(body: Mapping[str, Any], name: str, *kinds: type) -> Any:
    """Return a required field of a given type, with OpenAI's error texts."""
    if body.get(name) is None:
        message = f"Missing required parameter: '{name}'."
        raise ApiError(400, message, name, "missing_required_parameter")
    if not isinstance(body[name], kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise ApiError(400, f"Invalid type for '{name}': expected {expected}.", name, "invalid_type")
    return body[name]


def require_objects(body: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return a required non-empty list of objects."""
    given: list[Any] = require(body, name, list)
    if not given:
        raise ApiError(400, f"Invalid '{name}': expected at least one entry.", name, "empty_array")
    for index, entry in enumerate(given):
        if not isinstance(entry, dict):
            where = f"{name}[{index}]"
            raise ApiError(400, f"Invalid type for '{where}': expected an object.", where, "invalid_type")
    return given
