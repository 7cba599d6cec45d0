"""What all APIs that let a model answer have in common: scripted replies, given whole or streamed."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from .core import ApiError, Dialect, json_body
from .replies import Reply, ReplyScript, Scripted, tokens_in


class ScriptedApi:
    """An API whose answers a test has queued. With nothing queued it refuses, and says why."""

    dialect: Dialect
    path: str

    def __init__(self) -> None:
        self._script = ReplyScript()
        self.context_window: int | None = None
        """How many tokens a request may have, about; more is refused as the provider refuses it."""

    # --- for tests ---

    def reply(self, *replies: Scripted) -> None:
        """Queue answers, one for each request to come: texts, replies, calls of tools, errors, functions."""
        self._script.add(replies)

    def reply_always(self, scripted: Scripted) -> None:
        """Answer so whenever nothing is queued."""
        self._script.use_default(scripted)

    @property
    def replies_left(self) -> int:
        """How many of the queued answers nobody has asked for yet."""
        return len(self._script)

    def reset(self) -> None:
        """Forget all that was scripted."""
        self._script.clear()
        self.context_window = None

    # --- answering ---

    def routes(self) -> Sequence[BaseRoute]:
        """What answers the requests."""
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

    # --- for each API to say ---

    def check(self, body: dict[str, Any], headers: Mapping[str, str]) -> None:
        """Refuse what the API refuses, with an `ApiError`."""
        raise NotImplementedError

    def prompt(self, body: dict[str, Any]) -> Any:
        """What of the request the model reads."""
        raise NotImplementedError

    def whole(self, body: dict[str, Any], reply: Reply) -> dict[str, Any]:
        """The answer in one piece."""
        raise NotImplementedError

    def events(self, body: dict[str, Any], reply: Reply) -> Iterator[bytes]:
        """The answer as server-sent events."""
        raise NotImplementedError


def event_stream(events: Iterator[bytes]) -> Response:
    """An answer that comes event by event."""

    async def each() -> AsyncIterator[bytes]:
        for event in events:
            yield event

    return StreamingResponse(each(), media_type="text/event-stream")


def event(data: Any, name: str | None = None) -> bytes:
    """A server-sent event, with or without a name."""
    head = "" if name is None else f"event: {name}\n"
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"{head}data: {text}\n\n".encode()


def require(body: Mapping[str, Any], name: str, *kinds: type) -> Any:
    """A field that must be there and of a type, in the words of OpenAI."""
    if body.get(name) is None:
        message = f"Missing required parameter: '{name}'."
        raise ApiError(400, message, name, "missing_required_parameter")
    if not isinstance(body[name], kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise ApiError(400, f"Invalid type for '{name}': expected {expected}.", name, "invalid_type")
    return body[name]


def require_objects(body: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """A field that must be a list of objects, at least one."""
    given: list[Any] = require(body, name, list)
    if not given:
        raise ApiError(400, f"Invalid '{name}': expected at least one entry.", name, "empty_array")
    for index, entry in enumerate(given):
        if not isinstance(entry, dict):
            where = f"{name}[{index}]"
            raise ApiError(400, f"Invalid type for '{where}': expected an object.", where, "invalid_type")
    return given
