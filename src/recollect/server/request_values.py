"""Values that a route needs of its request alone, computed without FastAPI's resolver.

The resolver takes longer than such a value: it makes the arguments of every dependency anew. A route of ours
takes them out of the signature that FastAPI sees. They are computed before the request is validated, so that
a caller without permission learns nothing about the format of a request.
"""

import inspect
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import Any, Generic, TypeAlias, TypeVar, get_args

from fastapi import Request
from fastapi.params import Depends

T = TypeVar("T")
Endpoint: TypeAlias = Callable[..., Coroutine[Any, Any, Any]]
Values: TypeAlias = Mapping[str, "RequestValue[Any]"]

_REQUEST = "request"


class RequestValue(Generic[T]):
    """A dependency that needs the request only. FastAPI can resolve it, too, in another dependency."""

    def __init__(self, compute: Callable[[Request], T]) -> None:
        self.compute = compute

    async def __call__(self, request: Request) -> T:
        """The value, for FastAPI. It is a coroutine: FastAPI would run a plain function in a thread."""
        return self.compute(request)


def take_values(endpoint: Endpoint) -> tuple[Endpoint, Values]:
    """The endpoint without the parameters that are such values, and these values by their names.

    When it is called, the values must be in `request.state.values`.
    """
    parameters = inspect.signature(endpoint).parameters
    values = {name: _value_in(each.annotation) for name, each in parameters.items()}
    found = {name: value for name, value in values.items() if value is not None}
    if not found or not inspect.iscoroutinefunction(endpoint):
        return endpoint, {}
    wants_request = _REQUEST in parameters

    @wraps(endpoint)
    async def call(**given: Any) -> Any:
        request = given[_REQUEST] if wants_request else given.pop(_REQUEST)
        return await endpoint(**given, **request.state.values)

    left = [each for name, each in parameters.items() if name not in found]
    if not wants_request:
        left.append(inspect.Parameter(_REQUEST, inspect.Parameter.KEYWORD_ONLY, annotation=Request))
    call.__signature__ = inspect.Signature(left)  # type: ignore[attr-defined]
    return call, found


def _value_in(annotation: Any) -> RequestValue[Any] | None:
    """The value that an `Annotated` type asks for."""
    for each in get_args(annotation)[1:]:
        if isinstance(each, Depends) and isinstance(each.dependency, RequestValue):
            return each.dependency
    return None
