"""The MCP server over streamable HTTP. The key and the headers of each request select the memory.

The server is stateless: there is no session that another client could take over, and several instances can
serve the same clients.
"""

import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ..errors import RecollectError
from ..server.access.authentication import Caller, authenticate
from ..server.access.keys import KeyStore
from ..server.access.limits import RateLimiter
from ..server.problems import MEDIA_TYPE, Problem
from ..server.settings import Settings
from ..server.transport.listener import is_loopback
from .access import AGENT_HEADER, USER_HEADER, Access, PinnedOwner, access_of
from .server import Context, build_server
from .stores import MemoryStores

PATH = "/mcp"

_MAX_BODY = 256 * 1024  # bytes: no tool takes more than a few thousand characters
_ACCESS = "recollect_access"
_UNAVAILABLE = Problem("storage_unavailable", "The database is unavailable.", headers={"Retry-After": "1"})


def mcp_app(settings: Settings, pinned: PinnedOwner | None = None, *, host: str = "127.0.0.1") -> Starlette:
    """An ASGI application that serves MCP at `/mcp`. `host` is the address on which it listens.

    While keys are not required, it serves the tenant `default` to every client that reaches it.
    """
    stores = MemoryStores(settings)
    keys = KeyStore(
        settings.database.url, **settings.database.options(), require_keys=settings.access.require_keys
    )
    manager = StreamableHTTPSessionManager(
        build_server(stores, _access_of_request),
        json_response=True,
        stateless=True,
        security_settings=_security(host),
        max_request_body_size=_MAX_BODY,
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with stores, keys, manager.run():
            yield

    gate = Gate(manager.asgi_app, settings, keys, pinned or PinnedOwner())
    return Starlette(routes=[Route(PATH, gate)], lifespan=lifespan)


class Gate:
    """Checks that every request passes before its body is read: key, rate and owner."""

    def __init__(self, app: ASGIApp, settings: Settings, keys: KeyStore, pinned: PinnedOwner) -> None:
        self._app = app
        self._settings = settings
        self._keys = keys
        self._pinned = pinned
        self._rates = RateLimiter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on."""
        try:
            scope.setdefault("state", {})[_ACCESS] = await self._check(scope)
        except Problem as problem:
            await _problem_response(problem)(scope, receive, send)
        except (RecollectError, OSError):
            await _problem_response(_UNAVAILABLE)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _check(self, scope: Scope) -> Access:
        headers = Headers(scope=scope)
        caller = await authenticate(self._keys, headers.get("authorization"))
        self._check_rate(caller)
        if scope["method"] != "POST":
            # The server sends no messages of its own, and has no session to end.
            raise Problem("method_not_allowed", "Send requests with POST.", headers={"Allow": "POST"})
        named = {
            name.lower(): [*headers.getlist(name), *headers.getlist(f"X-{name}")]
            for name in (USER_HEADER, AGENT_HEADER)
        }
        return access_of(caller, named, self._pinned)

    def _check_rate(self, caller: Caller) -> None:
        per_minute = self._settings.limits_for(caller.tenant).requests_per_minute
        wait = 0.0 if per_minute is None else self._rates.take(caller.tenant, per_minute)
        if wait > 0:
            headers = {"Retry-After": str(math.ceil(wait))}
            raise Problem(
                "rate_limited", f"At most {per_minute} requests per minute are allowed.", headers=headers
            )


def _access_of_request(context: Context) -> Access:
    assert context.request is not None
    access: Access = context.request.scope["state"][_ACCESS]
    return access


def _security(host: str) -> TransportSecuritySettings:
    """Protection against DNS rebinding: web pages must not reach a server that needs no key."""
    if not is_loopback(host):
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)  # keys are required there
    names = [*dict.fromkeys(("127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host))]
    hosts = [form for name in names for form in (name, f"{name}:*")]
    return TransportSecuritySettings(
        allowed_hosts=hosts, allowed_origins=[f"http://{form}" for form in hosts]
    )


def _problem_response(problem: Problem) -> Response:
    body = json.dumps(problem.document())
    return Response(body, problem.status, headers=problem.headers, media_type=MEDIA_TYPE)
