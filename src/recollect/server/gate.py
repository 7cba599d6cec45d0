"""What a request passes before it is read: who sends it, how often, how much, and in what form."""

import asyncio
from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import RecollectError
from .access.callers import authenticate
from .faults import answer_error, answer_problem
from .problems import Problem
from .service import Service

_WITH_BODY = {"POST", "PUT", "PATCH"}
_GUARDED = "/v1"


class Gate:
    """Lets a request through to the routes with its caller known, and its whole body there."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have it answered."""
        if scope["type"] != "http" or not _is_guarded(scope["path"]):
            await self._app(scope, receive, send)
            return
        service: Service = scope["app"].state.service
        try:
            receive = await _let_in(service, scope, receive)
        except Problem as problem:
            await answer_problem(problem)(scope, receive, send)
            return
        except RecollectError as error:  # the keys are in the database, which may not answer
            await answer_error(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _is_guarded(path: str) -> bool:
    return path == _GUARDED or path.startswith(f"{_GUARDED}/")


async def _let_in(service: Service, scope: Scope, receive: Receive) -> Receive:
    headers = Headers(scope=scope)
    caller = await authenticate(service.keys, headers.get("authorization"))
    scope.setdefault("state", {})["caller"] = caller
    service.check_rate(caller.tenant)
    if scope["method"] not in _WITH_BODY:
        return receive
    _check_form(headers)
    limits = service.settings.server
    body = await _read_body(headers, receive, limits.max_body_bytes, limits.receive_seconds)
    return _replaying(body, receive)


def _check_form(headers: Mapping[str, str]) -> None:
    kind = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise Problem("unsupported_media_type", "send the body as application/json")


async def _read_body(headers: Mapping[str, str], receive: Receive, most: int, seconds: float) -> bytes:
    """The whole body; one that is too long is refused as soon as that is known."""
    announced = headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > most:
        raise _too_large(most)
    try:
        async with asyncio.timeout(seconds):
            return await _received(receive, most)
    except TimeoutError as error:
        raise Problem("request_timeout", f"the body did not arrive in {seconds:g} seconds") from error


async def _received(receive: Receive, most: int) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            # What has come may be whole by chance, and is not what was meant to be sent.
            raise Problem("invalid_json", "the connection ended before the body did")
        body += message.get("body", b"")
        if len(body) > most:
            raise _too_large(most)
        if not message.get("more_body", False):
            return bytes(body)


def _too_large(most: int) -> Problem:
    # What is left of the body is not read: the connection cannot be used again.
    return Problem("body_too_large", f"a body may have {most} bytes", headers={"Connection": "close"})


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Gives the body once more, and then whatever comes."""
    is_given = False

    async def replay() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
