"""Dependencies of routes: the caller, the store of its tenant, the service, auditing and idempotency."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi.routing import APIRoute

from ..errors import RecollectError, StorageError
from ..memory.store import MemoryStore
from .access.audit import new_entry
from .access.authentication import Caller
from .access.keys import Scope
from .error_handlers import status_of
from .idempotency import Ids
from .problems import Problem
from .request_values import Endpoint, RequestValue, Values, take_values
from .service import Service
from .telemetry.logs import current_request_id, log_unexpected

Handle: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]

_READ_METHODS = {"GET", "HEAD"}
_CREATED = 201
_TARGETS = {
    "conversation_id": "conversation",
    "memory_id": "memory",
    "content_id": "entry",
    "run_id": "run",
}
"""The kind of object that each path parameter identifies."""


def service_of(request: Request) -> Service:
    """The service that handles a request."""
    service: Service = request.app.state.service
    return service


def caller_of(request: Request) -> Caller:
    """The caller of a request. The gate has authenticated it before the body was read."""
    caller: Caller = request.state.caller
    return caller


def _require(scope: Scope) -> RequestValue[Caller]:
    def allowed(request: Request) -> Caller:
        caller = caller_of(request)
        if not caller.allows(scope):
            raise Problem("forbidden", f"This needs a key with the scope {scope}.")
        return caller

    return RequestValue(allowed)


def _store_requiring(scope: Scope) -> RequestValue[MemoryStore]:
    allowed = _require(scope)

    def store(request: Request) -> MemoryStore:
        return service_of(request).memory.for_tenant(allowed.compute(request).tenant)

    return RequestValue(store)


ServiceDep = Annotated[Service, Depends(RequestValue(service_of))]
Reader = Annotated[Caller, Depends(_require("read"))]
Writer = Annotated[Caller, Depends(_require("write"))]
Admin = Annotated[Caller, Depends(_require("admin"))]
ReadStore = Annotated[MemoryStore, Depends(_store_requiring("read"))]
WriteStore = Annotated[MemoryStore, Depends(_store_requiring("write"))]
AdminStore = Annotated[MemoryStore, Depends(_store_requiring("admin"))]
STORES: dict[Scope, Any] = {"read": ReadStore, "write": WriteStore, "admin": AdminStore}
"""The store that a route gets, by the scope that it needs."""


# --- the audit log ---


class AuditedRoute(APIRoute):
    """A route that writes an audit log entry before it responds, also for a failed request.

    Routes with a writing method are audited; `openapi_extra={"x-audited": …}` overrides that. The action is
    the route's `operation_id`; a route without one only refuses methods and is not audited. A route sets its
    target in `request.state.audit_target`, as ids only.
    """

    def __init__(self, path: str, endpoint: Endpoint, **options: Any) -> None:
        endpoint, self._values = take_values(endpoint)
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Handle:
        """The handler of the route, followed by the audit log entry."""
        handle = _with_values(self._values, super().get_route_handler())
        action, changes = self.operation_id, not (set(self.methods or ()) <= _READ_METHODS)
        if action is None or not (self.openapi_extra or {}).get("x-audited", changes):
            return handle

        async def handle_audited(request: Request) -> Response:
            request.state.audit_action = action
            try:
                response = await handle(request)
            except Exception as error:
                await _audit_failure(request, action, error)
                raise
            if not getattr(request.state, "is_audited", False):
                await _audit(request, action, response.status_code)
            if getattr(request.state, "is_replay", False):
                response.headers["Idempotency-Replayed"] = "true"
            return response

        return handle_audited


def _with_values(values: Values, handle: Handle) -> Handle:
    async def handle_with_values(request: Request) -> Response:
        request.state.values = {name: each.compute(request) for name, each in values.items()}
        return await handle(request)

    return handle_with_values


@asynccontextmanager
async def audited_write(request: Request, kind: str, identifier: str) -> AsyncIterator[None]:
    """Audit a request that creates something in the transaction of the one write in this block.

    That saves a commit where the database is a file. Elsewhere the entry is written after the block. If the
    request fails after the write, a second entry has the status of the response. An id that the service has
    not made is recorded as `other`.
    """
    caller, state, target = caller_of(request), request.state, f"{kind}:{identifier}"
    entry = new_entry(
        caller.tenant, caller.key_id, state.audit_action, target, _CREATED, current_request_id()
    )
    async with service_of(request).audit.record_with_next_write(entry) as joining:
        try:
            yield
        finally:
            if joining.is_written:
                state.audit_target, state.is_audited = target, True
    state.audit_target = target


async def _audit(request: Request, action: str, status: int) -> None:
    caller = caller_of(request)
    target = getattr(request.state, "audit_target", None) or await _target_in_url(request)
    await service_of(request).audit.record(
        caller.tenant, caller.key_id, action, target, status, current_request_id()
    )


async def _target_in_url(request: Request) -> str | None:
    """The target in the URL, for a request that was refused before its route set one."""
    for name, kind in _TARGETS.items():
        if name in request.path_params:
            return f"{kind}:{request.path_params[name]}"
    user_id = request.query_params.get("user_id")
    if user_id is None:
        return None
    store = service_of(request).memory.for_tenant(caller_of(request).tenant)
    try:
        return f"user:{await store.receipt_subject(user_id)}"
    except ValueError:  # not a valid user id
        return None


async def _audit_failure(request: Request, action: str, error: Exception) -> None:
    """Audit a failed request. If the audit log fails, too, the caller still gets the first error.

    If the database caused both failures, only the first one is logged.
    """
    try:
        await _audit(request, action, status_of(error))
    except RecollectError as audit_error:
        if not isinstance(error, StorageError):
            log_unexpected(audit_error)


def make_router(tag: str) -> APIRouter:
    """A router whose routes are audited."""
    return APIRouter(tags=[tag], route_class=AuditedRoute)


# --- Idempotency-Key ---


class Once:
    """Runs a function once per `Idempotency-Key`, however often the request is sent.

    `make` gets a generator of ids, which are the same at each attempt with this key, and returns a small JSON
    object of ids. That object is stored, and a repeated request gets it. Without a key, `make` always runs.
    """

    def __init__(self, request: Request, key: str | None) -> None:
        self._request = request
        self._key = key

    async def __call__(self, make: Callable[[Ids], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """The result of `make`, now or from an earlier request with the same key and body."""
        service, caller = service_of(self._request), caller_of(self._request)
        body, place = await self._request.body(), f"{self._request.method} {self._request.url.path}"
        made, is_replay = await service.idempotency.once(caller.tenant, place, self._key, body, make)
        self._request.state.is_replay = is_replay
        return made


async def _once(
    request: Request,
    idempotency_key: Annotated[
        str | None,
        Header(
            description="Makes retries safe: within 24 hours, a request with the same key and body gets the"
            " result of the first one. The same key with another body is refused.",
            min_length=1,
            max_length=255,
            pattern=r"^[!-~]+$",
            examples=["5b0a3c1e-order-17"],
        ),
    ] = None,
) -> Once:
    return Once(request, idempotency_key)


OnceDep = Annotated[Once, Depends(_once)]
