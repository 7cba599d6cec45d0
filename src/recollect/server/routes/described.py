"""Routes that follow from the descriptions of operations."""

import inspect
from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

from ...memory.operations.description import Kind, Operation, Route, arguments_of
from ...memory.store import MemoryStore
from ..dependencies import STORES, ServiceDep, caller_of
from ..problems import Problem, translate_input_errors
from ..schemas.base import PageQuery, QueryParameters, json_response
from ..schemas.operations import query_model, request_from
from ..schemas.problems import Responses, problems
from ..service import Service
from .shared import PATH_ARGUMENTS, VERSIONED, Pages, etag_header, require_admin_without_owner, require_found

_KINDS = {"GET": "read", "DELETE": "read", "POST": "send", "PATCH": "send", "PUT": "send"}
"""The kinds of problems that a request with a method may answer with."""

Endpoint: TypeAlias = Callable[..., Coroutine[Any, Any, Response]]


def add_route(
    router: APIRouter,
    operation: type[Operation[Any]],
    endpoint: Endpoint,
    response_model: type[BaseModel],
    responses: Responses | None = None,
    **annotations: Any,
) -> None:
    """Add the route of an operation. `annotations` are those of parameters of the endpoint.

    A parameter whose annotation is `None` is no part of the request. The `store` is that of the scope of the
    operation, and `**path` stands for the arguments in the path.
    """
    route = operation.route
    assert route is not None
    in_path = {name: PATH_ARGUMENTS[name] for name in route.in_path}
    types = {"store": STORES[route.scope], **in_path, **annotations}
    endpoint.__signature__ = _signature(endpoint, types, route.in_path)  # type: ignore[attr-defined]
    router.add_api_route(
        route.path,
        endpoint,
        methods=[route.method],
        operation_id=route.name,
        summary=route.summary,
        description=_describe(operation, route),
        response_model=response_model,
        responses={**(responses or {}), **problems(_KINDS[route.method], *route.codes)},
        openapi_extra={"x-audited": route.scope == "admin"} if route.is_search else None,
    )


def _signature(endpoint: Endpoint, types: dict[str, Any], in_path: Sequence[str]) -> inspect.Signature:
    given = inspect.signature(endpoint).parameters.values()
    absent = {name for name, annotation in types.items() if annotation is None}
    parameters = [
        each.replace(annotation=types.get(each.name, each.annotation), kind=each.KEYWORD_ONLY)
        for each in given
        if each.kind is not each.VAR_KEYWORD and each.name not in absent
    ]
    named = {each.name for each in parameters}
    path = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=PATH_ARGUMENTS[name])
        for name in in_path
        if name not in named
    ]
    return inspect.Signature([*path, *parameters])


def _describe(operation: type[Operation[Any]], route: Route) -> str:
    words = inspect.cleandoc(operation.__doc__ or "")
    if not route.unless_admin:
        return words
    missing = " and ".join(f"`{name}`" for name in route.unless_admin)
    return f"{words}\n\nWithout {missing}, this needs a key with the scope admin."


def require_owner(route: Route | None, request: Request, query: BaseModel) -> None:
    """Refuse a list that is not limited to one owner, unless the caller's key has the scope admin."""
    assert route is not None
    owner = (getattr(query, name) for name in route.unless_admin)
    require_admin_without_owner(caller_of(request), *owner)


def add_read(
    router: APIRouter,
    operation: type[Operation[Any]],
    response_model: type[BaseModel],
    serialize: Callable[[Any], Any],
    missing: str,
    version: Callable[[Any], int | str] | None = None,
) -> None:
    """Add the route of an operation that reads one thing. Its `version`, if it has one, is the `ETag`.

    `missing` is the detail of a `not_found`.
    """
    model = query_model(QueryParameters, operation)

    async def read(store: MemoryStore, query: QueryParameters | None = None, **path: str) -> Response:
        with translate_input_errors():
            found = await store.perform(request_from(operation, query or model(), **path))
        if not found:
            raise Problem("not_found", missing)
        headers = None if version is None else etag_header(version(found))
        return json_response(serialize(found), headers=headers)

    query = Annotated[model, Query()] if model.model_fields else None
    add_route(router, operation, read, response_model, None if version is None else VERSIONED, query=query)


# --- lists ---


class DescribedList:
    """A list of an operation, read page by page. `missing` names what a `not_found` is about."""

    def __init__(
        self, operation: type[Operation[Any]], serialize: Callable[[Any], Any], missing: str = ""
    ) -> None:
        route = operation.route
        assert route is not None
        assert route.listing is not None
        position = next(each for each in arguments_of(operation) if each.kind is Kind.POSITION)
        self._operation = operation
        self._route = route
        self._missing = missing
        self._position = position.name
        self.pages: Pages[Any] = Pages(
            route.listing.cursor_kind, route.listing.position, serialize, position.type
        )

    async def respond(
        self, query: PageQuery, request: Request, store: MemoryStore, service: Service, **path: str
    ) -> Response:
        """The page that a query names."""
        require_owner(self._route, request, query)

        async def read(position: Any, limit: int) -> Sequence[Any]:
            page = {self._position: position, "limit": limit}
            rows = await store.perform(request_from(self._operation, query, **path, **page))
            return require_found(rows, self._missing)

        return await self.pages.respond(service, query, read)

    def add_to(self, router: APIRouter, page: type[BaseModel]) -> None:
        """Add the route of the list."""

        async def respond(
            query: PageQuery, request: Request, store: MemoryStore, service: ServiceDep, **path: str
        ) -> Response:
            return await self.respond(query, request, store, service, **path)

        model = query_model(PageQuery, self._operation)
        add_route(router, self._operation, respond, page, query=Annotated[model, Query()])
