"""Sends an operation to a service as its route describes it, and reads the result."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, cast, get_args, get_origin
from urllib.parse import quote

from ...cursors import decode_cursor, make_cursor
from ...service_client import NotFoundOnServiceError, ServiceClient
from ..hits import ConversationsFound
from ..operations.description import Kind, Operation, Route, arguments_of, result_of
from ..times import format_time
from .pages import RemoteList, page_size
from .values import not_over_http, read_value

T = TypeVar("T")


class _Request(NamedTuple):
    route: Route
    path: str
    values: dict[str, Any]
    """The arguments that are not in the path, as JSON."""
    position: str | int | None
    """The position that a page of a list comes after."""
    limit: int | None


async def send(client: ServiceClient, operation: Operation[T]) -> T:
    """The result of an operation in a service."""
    kind, is_optional = _result_of(type(operation))
    request = _request_for(operation)
    try:
        return cast(T, await _send(client, request, kind))
    except NotFoundOnServiceError:
        if is_optional:
            return cast(T, None)
        if kind is int or get_origin(kind) is list:
            return cast(T, (get_origin(kind) or kind)())  # nothing: 0, or an empty list
        raise


async def _send(client: ServiceClient, request: _Request, kind: Any) -> Any:
    route = request.route
    if route.listing is None:
        if request.values.get("limit") == 0:
            return kind(())  # the service refuses such a search
        return _read_result(kind, await _answer(client, request))
    if kind is ConversationsFound:
        return await _one_page(client, request)
    listed = RemoteList(client, request.path, route.listing.cursor_kind)
    rows = await listed.read(request.limit, request.position, **request.values)
    return [read_value(get_args(kind)[0], row) for row in rows]


async def _answer(client: ServiceClient, request: _Request) -> Any:
    route = request.route
    if route.is_search:
        return await client.read(request.path, request.values)
    if route.method == "GET":
        return await client.get(request.path, **request.values)
    body = request.values or None
    return await client.change(route.method, request.path, body, is_repeatable=route.is_repeatable)


def _read_result(kind: Any, answer: Any) -> Any:
    if kind is NoneType:
        return None
    if get_origin(kind) is list:
        return [read_value(get_args(kind)[0], each) for each in answer["items"]]
    return read_value(kind, answer)


async def _one_page(client: ServiceClient, request: _Request) -> ConversationsFound:
    assert request.route.listing is not None
    cursor = (
        None if request.position is None else make_cursor(request.route.listing.cursor_kind, request.position)
    )
    page = await client.get(request.path, cursor=cursor, limit=page_size(request.limit), **request.values)
    position = page["next_cursor"] and decode_cursor(page["next_cursor"])[1]
    return ConversationsFound([read_value(dict[str, Any], row) for row in page["items"]], position)


def _result_of(operation: type) -> tuple[Any, bool]:
    """The type of the result, and whether the result may be `None`."""
    kind = result_of(operation)
    if get_origin(kind) is UnionType:
        return next(each for each in get_args(kind) if each is not NoneType), True
    return kind, False


def _request_for(operation: Operation[Any]) -> _Request:
    route = operation.route
    assert route is not None
    path, values = {}, dict(route.always)
    position = limit = None
    for argument in arguments_of(type(operation)):
        given = getattr(operation, argument.name)
        if argument.local_only is not None:
            if given != argument.default:
                raise not_over_http(argument.local_only.reason)
        elif argument.name in route.in_path:
            path[argument.name] = quote(given, safe="")
        elif argument.kind is Kind.POSITION:
            position = given
        elif argument.kind is Kind.ROWS:
            limit = given
        else:
            values[route.names.get(argument.name, argument.name)] = _to_json(given)
    return _Request(route, route.path.format(**path), values, position, limit)


def _to_json(given: Any) -> Any:
    if isinstance(given, datetime):
        return format_time(given)
    if isinstance(given, Mapping):
        return dict(given)
    return given if isinstance(given, str) or not isinstance(given, Sequence) else list(given)
