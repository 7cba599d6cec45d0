"""The gate: checks that every request passes before routing.

It authenticates the caller, checks host and origin, applies rate and concurrency limits, and reads the body.
"""

import asyncio
from collections.abc import Iterable
from contextlib import ExitStack
from functools import lru_cache

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ...errors import RecollectError
from ...providers.turnstile import Turnstile
from ..access.authentication import Caller, authenticate, proxy_authorization
from ..access.limits import RETRY_AFTER, SlotLimits, Slots
from ..access.origins import check_origin
from ..access.recent_callers import RecentCallers
from ..error_handlers import error_response, problem_response
from ..problems import Problem
from ..service import Service
from ..settings import ProxySettings, ServerSettings
from .bodies import is_streamed, read_body, replay_body, stream_body
from .listener import is_loopback

_WITH_BODY = {"POST", "PUT", "PATCH"}
_GUARDED, _PROXY = "/v1", "/proxy"
_OUTAGE = 300.0  # seconds for which a proxied call needs no database to be admitted again
# In one cycle of the event loop, if it is busy: thousands of requests must not delay the probes. More of them
# are admitted or refused than begin, so those beyond the limit are refused before the others are served.
_ARRIVALS_AT_ONCE, _REQUESTS_AT_ONCE = 64, 8
_CLOSE = {"Connection": "close"}


class Gate:
    """Passes a request on to the routes with its caller known and its body read.

    The number of concurrent requests is limited, and how long one waits for its turn. Arriving bodies and
    running requests are counted separately, so that slow senders do not block others. A stream counts as
    running until it ends. Probes do not count, and do not wait for other requests.
    """

    def __init__(self, app: ASGIApp, limits: ServerSettings, proxy: ProxySettings | None = None) -> None:
        proxy = proxy or ProxySettings()
        slots = SlotLimits.of_shares(limits.max_concurrency, limits.tenant_share, limits.key_share)
        self._app = app
        self._limits = limits
        self._proxy_limits = limits.model_copy(update={"max_body_bytes": proxy.max_body_bytes})
        self._proxy_callers = RecentCallers(_OUTAGE, proxy.recall_milliseconds / 1000)
        self.receiving = Slots(slots)
        """The requests whose bodies are arriving."""
        self.serving = Slots(slots)
        """The requests that routes are handling, or that wait for their turn."""
        self._arrivals = Turnstile(at_once=_ARRIVALS_AT_ONCE)
        self._turnstile = Turnstile(at_once=_REQUESTS_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with ExitStack() as slots:
            try:
                check_host_header(scope)
                if _is_under(_GUARDED, scope["path"]) or _is_under(_PROXY, scope["path"]):
                    receive = await self._check(scope, receive, slots)
            except Problem as problem:
                await problem_response(problem)(scope, receive, send)
                return
            except RecollectError as error:  # the database, which has the keys, may be unavailable
                await error_response(error)(scope, receive, send)
                return
            await self._app(scope, receive, send)

    async def _check(self, scope: Scope, receive: Receive, slots: ExitStack) -> Receive:
        """Check a request, read its body and take a slot, which is released with `slots`.

        A request that waits for its turn has a slot, so the number of waiting ones is limited, too.
        """
        await self._wait(self._arrivals)
        caller = await self._admit(scope)
        receive = await self._receive(caller, scope, receive)
        slots.enter_context(self.serving.hold(caller))
        await self._wait(
            self._turnstile
        )  # hundreds of requests at once must not block the event loop together
        return receive

    async def _wait(self, turnstile: Turnstile) -> None:
        """Wait for a turn. Who waits too long is refused, and has a reason to come back later."""
        longest = self._limits.max_wait_seconds
        try:
            async with asyncio.timeout(longest):
                await turnstile()
        except TimeoutError:
            raise Problem(
                "overloaded",
                f"The request waited for its turn for more than {longest:g} seconds.",
                headers=RETRY_AFTER | _CLOSE,
            ) from None

    async def _admit(self, scope: Scope) -> Caller:
        service: Service = scope["app"].state.service
        headers = Headers(scope=scope)
        if _is_under(_PROXY, scope["path"]):
            caller = await self._proxy_callers.authenticate(service.keys, proxy_authorization(headers))
        else:
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
        if is_streamed(scope):
            return stream_body(Headers(scope=scope), receive, self._limits)
        limits = self._proxy_limits if _is_under(_PROXY, scope["path"]) else self._limits
        try:
            with self.receiving.hold(caller):
                body = await read_body(Headers(scope=scope), receive, limits)
        except Problem as problem:
            if problem.code in ("concurrency_limited", "overloaded"):
                problem.headers |= _CLOSE  # the body is not read, so the connection cannot be reused
            raise
        return replay_body(body, receive)


def _is_under(prefix: str, path: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}/")


def check_host_header(scope: Scope) -> None:
    """Refuse an HTTP/1.1 request without exactly one `Host` header, which RFC 9112 requires."""
    count = sum(name == b"host" for name, _ in scope["headers"])
    if scope["http_version"] == "1.1" and count != 1:
        detail = f"Send exactly one Host header, not {count}."
        raise Problem("invalid_request", detail, headers=_CLOSE)


def _check_own_hosts(hosts: Iterable[str], own: str) -> None:
    """Without keys, accept only requests to a host name of this machine, against DNS rebinding.

    An attacker's page can point its own host name at this machine, and its requests then count as
    same-origin.
    """
    if not all(is_own_host(host, own) for host in hosts):
        detail = "Without keys, the service answers only to names of this machine, such as localhost."
        raise Problem("misdirected_request", detail)


@lru_cache(maxsize=64)  # a client sends the same one each time
def is_own_host(given: str, own: str) -> bool:
    """Whether a `Host` header, with or without a port, names this machine or the configured address."""
    name = given.strip().lower()
    name = name[1:].partition("]")[0] if name.startswith("[") else name.rpartition(":")[0] or name
    return is_loopback(name) or name == own.lower()
