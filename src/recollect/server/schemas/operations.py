"""Request models, made from the descriptions of operations."""

from collections.abc import Mapping
from types import new_class
from typing import Annotated, Any, TypeAlias, TypeVar, cast

from pydantic import Field

from ...memory.operations.description import MOST_USERS, Argument, Kind, Operation, arguments_of
from . import examples
from .base import (
    NO_NUL,
    Bound,
    Key,
    Metadata,
    Name,
    OwnerId,
    QueryParameters,
    RequestBody,
    Tags,
    Time,
    with_examples,
)

OperationT = TypeVar("OperationT", bound=Operation[Any])
ModelT = TypeVar("ModelT", bound=RequestBody | QueryParameters)

Chance: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Question: TypeAlias = Annotated[str, Field(max_length=100_000)]
HitLimit: TypeAlias = Annotated[int, Field(ge=1)]

_TYPES: dict[Kind | None, Any] = {
    Kind.OWNER_ID: OwnerId,
    Kind.USERS: Annotated[list[OwnerId], Field(min_length=1, max_length=MOST_USERS, fail_fast=True)],
    Kind.KEY: Key,
    Kind.QUESTION: Question,
    Kind.WORDS: Annotated[str, Field(min_length=1, max_length=200, pattern=NO_NUL)],
    Kind.TIME: Time,
    Kind.BOUND: Bound,
    Kind.NAME: Name,
    Kind.METADATA: Metadata,
    Kind.TAGS: Tags,
    Kind.CHANCE: Chance,
    Kind.HITS: HitLimit,
    Kind.TOKENS: Annotated[int, Field(ge=1, le=1_000_000)],
}
"""The forms of arguments in a request."""
_EXAMPLES = {"agent_id": examples.AGENT, "user_id": examples.OTHER_USER}
"""The examples of arguments that a query must have."""


def request_body(
    name: str, base: type[ModelT], operation: type[Operation[Any]], example: Mapping[str, Any]
) -> type[ModelT]:
    """The model of the body of an operation. `base` has further fields."""
    return _model(name, base, operation, {"model_config": with_examples(dict(example))})


def query_model(base: type[ModelT], operation: type[Operation[Any]]) -> type[ModelT]:
    """The model of the query string of an operation. `base` has further fields."""
    required = {each.name for each in arguments_of(operation) if each.is_required}
    shown = {name: Field(examples=[example]) for name, example in _EXAMPLES.items() if name in required}
    return _model(f"{operation.__name__}Query", base, operation, shown)


def _model(
    name: str, base: type[ModelT], operation: type[Operation[Any]], more: dict[str, Any]
) -> type[ModelT]:
    assert operation.route is not None
    names = operation.route.names
    types: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for each in _sent(operation):
        http_name = names.get(each.name, each.name)
        types[http_name] = _type_of(each)
        if each.is_optional or each.kind is Kind.HITS:
            defaults[http_name] = None
        elif not each.is_required:
            defaults[http_name] = each.default
    about = {"__doc__": f"{operation.route.summary}.", "__module__": __name__, "__annotations__": types}
    made = new_class(name, (base,), exec_body=lambda body: body.update({**about, **defaults, **more}))
    return cast(type[ModelT], made)


def _sent(operation: type[Operation[Any]]) -> list[Argument]:
    """The arguments in the body or the query string. Those of a page have the same form in all lists."""
    assert operation.route is not None
    elsewhere = operation.route.in_path
    sent = [each for each in arguments_of(operation) if each.local_only is None]
    return [
        each for each in sent if each.name not in elsewhere and each.kind not in (Kind.POSITION, Kind.ROWS)
    ]


def _type_of(argument: Argument) -> Any:
    kind = _TYPES.get(argument.kind, argument.type)
    if argument.description:
        kind = Annotated[kind, Field(description=argument.description)]
    return kind | None if argument.is_optional or argument.kind is Kind.HITS else kind


def request_from(
    operation: type[OperationT], model: RequestBody | QueryParameters, **given: Any
) -> OperationT:
    """The request that a validated model means. `given` has the arguments that are elsewhere."""
    assert operation.route is not None
    names = operation.route.names
    sent = {each.name: getattr(model, names.get(each.name, each.name)) for each in _sent(operation)}
    return operation(**{**sent, **given})
