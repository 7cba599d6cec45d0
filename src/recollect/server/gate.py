"""What a request passes before it is read: who sends it, how often, how much, and in what form."""

import asyncio
from collections.abc import Iterable, Mapping

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import RecollectError
from .access.callers import Caller, authenticate
from .addresses import is_loopback
from .faults import answer_error, answer_problem
from .problems import Problem
from .service import Service

_WITH_BODY = {"POST", "PUT", "PATCH"}
_GUARDED = "/v1"
_RETRY_AFTER = {"Retry-After": "1"}


class Gate:
    """Lets a request through to the routes with its caller known, and its whole body there.

    Only so many at once: a stream is being served until it ends. Probes are not counted, and always answered.
    """

    def __init__(self, app: ASGIApp, most_at_once: int) -> None:
        self._app = app
        self._most_at_once = most_at_once
        self._count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have it answered."""
        if scope["type"] != "http" or not _is_guarded(scope["path"]):
            await self._app(scope, receive, send)
            return
        if self._count >= self._most_at_once:
            problem = Problem("overloaded", f"at most {self._most_at_once} at once", headers=_RETRY_AFTER)
            await answer_problem(problem)(scope, receive, send)
            return
        self._count += 1
        try:
            await self._guard(scope, receive, send)
        finally:
            self._count -= 1

    async def _guard(self, scope: Scope, receive: Receive, send: Send) -> None:
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
    limits = service.settings.server
    _check_hosts(caller, headers.getlist("host"), limits.host)
    scope.setdefault("state", {})["caller"] = caller
    service.check_rate(caller.tenant)
    if scope["method"] not in _WITH_BODY:
        return receive
    _check_form(headers, has_body=False)
    body = await _read_body(headers, receive, limits.max_body_bytes, limits.receive_seconds)
    _check_form(headers, has_body=bool(body))
    return _replaying(body, receive)


def _check_hosts(caller: Caller, hosts: Iterable[str], own: str) -> None:
    """Without keys a name that leads here must be ours.

    A page from anywhere may have its own name lead to this machine, and then asks as if it were at home.
    """
    if caller.key_id is None and not all(is_own_host(host, own) for host in hosts):
        told = "without keys, the service answers by the name of this machine alone, such as localhost"
        raise Problem("misdirected_request", told)


def is_own_host(given: str, own: str) -> bool:
    """Whether a `Host` header, with a port or without, names this machine or the address of the service."""
    name = given.strip().lower()
    name = name[1:].partition("]")[0] if name.startswith("[") else name.rpartition(":")[0] or name
    return is_loopback(name) or name == own.lower()


def _check_form(headers: Mapping[str, str], *, has_body: bool) -> None:
    """What is said of a body is checked before it is read; nothing need be said where there is none."""
    kind = headers.get("content-type", "" if has_body else "application/json").partition(";")[0]
    kind = kind.strip().lower()
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
