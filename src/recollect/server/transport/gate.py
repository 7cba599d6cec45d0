"""What a request passes before a route sees it: who sends it, from where, how often, how much at once."""

from collections.abc import Iterable
from contextlib import ExitStack

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ...errors import RecollectError
from ..access.authentication import Caller, authenticate
from ..access.limits import SlotLimits, Slots
from ..access.origins import check_origin
from ..error_handlers import error_response, problem_response
from ..problems import Problem
from ..service import Service
from ..settings import ServerSettings
from .bodies import read_body, replay_body
from .listener import is_loopback

_WITH_BODY = {"POST", "PUT", "PATCH"}
_GUARDED = "/v1"
_CLOSE = {"Connection": "close"}


class Gate:
    """Lets a request through to the routes with its caller known, and its whole body there.

    Only so many at once. Bodies that are arriving and requests that are served are counted apart, so slow
    senders take nothing from others; a stream is served until it ends. Probes are not counted.
    """

    def __init__(self, app: ASGIApp, limits: ServerSettings) -> None:
        slots = SlotLimits.of_shares(limits.max_concurrency, limits.tenant_share, limits.key_share)
        self._app = app
        self._limits = limits
        self.receiving = Slots(slots)
        """Requests whose bodies are arriving."""
        self.serving = Slots(slots)
        """Requests that the routes have."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have it answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with ExitStack() as held:
            try:
                check_host_header(scope)
                if _is_guarded(scope["path"]):
                    receive = await self._pass(scope, receive, held)
            except Problem as problem:
                await problem_response(problem)(scope, receive, send)
                return
            except RecollectError as error:  # the keys are in the database, which may not answer
                await error_response(error)(scope, receive, send)
                return
            await self._app(scope, receive, send)

    async def _pass(self, scope: Scope, receive: Receive, held: ExitStack) -> Receive:
        """Check a request, read its body and take a slot, which is given back when `held` ends."""
        caller = await self._admit(scope)
        receive = await self._receive(caller, scope, receive)
        held.enter_context(self.serving.hold(caller))
        return receive

    async def _admit(self, scope: Scope) -> Caller:
        service: Service = scope["app"].state.service
        headers = Headers(scope=scope)
        caller = await authenticate(service.keys, headers.get("authorization"))
        is_open = caller.key_id is None
        if is_open:
            _check_own_hosts(headers.getlist("host"), self._limits.host)
        check_origin(scope["method"], headers, self._limits.cors_origins, is_open=is_open)
        scope.setdefault("state", {})["caller"] = caller
        service.check_rate(caller.tenant)
        return caller

    async def _receive(self, caller: Caller, scope: Scope, receive: Receive) -> Receive:
        if scope["method"] not in _WITH_BODY:
            return receive
        try:
            with self.receiving.hold(caller):
                body = await read_body(Headers(scope=scope), receive, self._limits)
        except Problem as problem:
            if problem.code in ("concurrency_limited", "overloaded"):
                problem.headers |= _CLOSE  # the body is not read, so the connection cannot be used again
            raise
        return replay_body(body, receive)


def _is_guarded(path: str) -> bool:
    return path == _GUARDED or path.startswith(f"{_GUARDED}/")


def check_host_header(scope: Scope) -> None:
    """Raise a problem if a request of HTTP/1.1 has no `Host`, or several: RFC 9112 asks for exactly one."""
    count = sum(name == b"host" for name, _ in scope["headers"])
    if scope["http_version"] == "1.1" and count != 1:
        detail = f"send exactly one Host header, not {count}"
        raise Problem("invalid_request", detail, headers=_CLOSE)


def _check_own_hosts(hosts: Iterable[str], own: str) -> None:
    """Without keys a name that leads here must be ours.

    A page from anywhere may have its own name lead to this machine, and then asks as if it were at home.
    """
    if not all(is_own_host(host, own) for host in hosts):
        told = "without keys, the service answers by the name of this machine alone, such as localhost"
        raise Problem("misdirected_request", told)


def is_own_host(given: str, own: str) -> bool:
    """Whether a `Host` header, with a port or without, names this machine or the address of the service."""
    name = given.strip().lower()
    name = name[1:].partition("]")[0] if name.startswith("[") else name.rpartition(":")[0] or name
    return is_loopback(name) or name == own.lower()
