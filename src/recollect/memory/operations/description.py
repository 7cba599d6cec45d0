"""How an operation is described: its arguments, its result, its route, and who may use it.

An operation is a frozen dataclass. Its fields are the arguments, its docstring says what a caller gets, and
the type in `Operation[…]` is the result. `MemoryStore` has a method for it. The synchronous manager, the
remote store, the HTTP API, the MCP tools and the options of commands follow from the same description. A
field is `Annotated[type, "What it does."]`. Each face has its own form of the types below.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from enum import Enum, auto
from functools import cached_property
from string import Formatter
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from ...errors import InvalidTypeError, InvalidValueError
from ...sessions.settings import check_limit
from ...sql.columns import check_id

T_co = TypeVar("T_co", covariant=True)

Scope: TypeAlias = Literal["read", "write", "admin"]
"""What an API key may do."""


MOST_USERS = 1000
"""The most users that a search may name."""


class Kind(Enum):
    """The meaning of an argument beyond its type. Each face has a form of its own for it."""

    OWNER_ID = auto()
    USERS = auto()
    KEY = auto()
    QUESTION = auto()
    WORDS = auto()
    TIME = auto()
    BOUND = auto()
    NAME = auto()
    METADATA = auto()
    TAGS = auto()
    CHANCE = auto()
    HITS = auto()
    ROWS = auto()
    TOKENS = auto()
    POSITION = auto()


OwnerId: TypeAlias = Annotated[str, Kind.OWNER_ID]
"""The id of an agent or a user: any text."""
Users: TypeAlias = Annotated[Sequence[str], Kind.USERS]
"""The ids of at most `MOST_USERS` users."""
Key: TypeAlias = Annotated[str, Kind.KEY]
"""The id of something that is stored."""
Question: TypeAlias = Annotated[str, Kind.QUESTION]
Words: TypeAlias = Annotated[str, Kind.WORDS]
"""Words that texts contain."""
Time: TypeAlias = Annotated[datetime | str, Kind.TIME]
Bound: TypeAlias = Annotated[datetime | str, Kind.BOUND]
"""A time, or a whole day, month or year."""
Name: TypeAlias = Annotated[str, Kind.NAME]
Metadata: TypeAlias = Annotated[Mapping[str, Any], Kind.METADATA]
Tags: TypeAlias = Annotated[Sequence[str], Kind.TAGS]
Chance: TypeAlias = Annotated[float, Kind.CHANCE]
Hits: TypeAlias = Annotated[int, Kind.HITS]
"""The most hits of a search."""
Rows: TypeAlias = Annotated[int, Kind.ROWS]
"""The most rows of a page."""
Tokens: TypeAlias = Annotated[int, Kind.TOKENS]
Position: TypeAlias = Annotated[str, Kind.POSITION]
"""The position in a list of the last row on the previous page. Over HTTP it is in a cursor."""
Place: TypeAlias = Annotated[int, Kind.POSITION]
"""The same as a number."""


@dataclass(frozen=True)
class LocalOnly:
    """An argument that does not go over HTTP. Only a store with the database itself has it."""

    reason: str


@dataclass(frozen=True)
class Listing:
    """A list that is read page by page."""

    cursor_kind: str
    """The kind of its cursors. Those of another list are refused."""
    position: Callable[[Any], str | int]
    """The position of a row."""


@dataclass(frozen=True)
class Route:
    """The HTTP request for an operation."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    """Arguments that it names are in the path; the others are in the query string, or in the body."""
    name: str
    """The id in OpenAPI and in the audit log. It is empty if another operation describes the path."""
    summary: str
    scope: Scope = "read"
    unless_admin: tuple[str, ...] = ()
    """Arguments that are required of a caller whose key lacks the scope admin."""
    codes: tuple[str, ...] = ()
    """The codes of the problems that it may answer with, besides those of every request."""
    is_repeatable: bool = False
    """Whether a change may be sent twice: the second time, it changes nothing."""
    is_search: bool = False
    """Whether it is a POST that changes nothing. It is audited only if it needs the scope admin."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The names that arguments have over HTTP, where these are others."""
    always: Mapping[str, Any] = field(default_factory=dict)
    """What a remote store sends besides the arguments."""
    listing: Listing | None = None

    @cached_property
    def in_path(self) -> tuple[str, ...]:
        """The names of the arguments in the path."""
        return tuple(name for _, name, _, _ in Formatter().parse(self.path) if name)


@dataclass(frozen=True)
class Operation(Generic[T_co]):
    """An operation with its arguments. Making one checks the ids and the limits."""

    route: ClassVar[Route | None] = None
    """`None` if it has no request of its own."""

    def __post_init__(self) -> None:
        for argument in arguments_of(type(self)):
            check = _CHECKS.get(argument.kind)
            given = getattr(self, argument.name)
            if check is not None and (given is not None or not argument.is_optional):
                check(argument.name, given)


def _check_users(name: str, given: object) -> None:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidTypeError(f"{name} must be a list of ids, not {type(given).__name__}")
    if not 1 <= len(given) <= MOST_USERS:
        raise InvalidValueError(f"{name} must be 1 to {MOST_USERS} ids, and it has {len(given)}")
    for each in given:
        check_id(name, each)


def _check_question(name: str, given: object) -> None:
    if not isinstance(given, str):
        raise InvalidTypeError(f"{name} must be a string, not {type(given).__name__}")


def _check_number(name: str, given: Any) -> None:
    if check_limit(given) is None:
        raise InvalidTypeError(f"{name} must be a whole number")


_CHECKS: dict[Kind | None, Callable[[str, Any], object]] = {
    Kind.OWNER_ID: check_id,
    Kind.USERS: _check_users,
    Kind.KEY: check_id,
    Kind.QUESTION: _check_question,
    Kind.HITS: _check_number,
    Kind.ROWS: _check_number,
}


@dataclass(frozen=True)
class Argument:
    """An argument of an operation, as a face reads it."""

    name: str
    type: Any
    """The type without `None`."""
    kind: Kind | None
    description: str
    default: Any
    """`MISSING` if it is required."""
    is_optional: bool
    """Whether it may be `None`."""
    local_only: LocalOnly | None

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING


def arguments_of(operation: type[Operation[Any]]) -> tuple[Argument, ...]:
    """The arguments of an operation."""
    found = _ARGUMENTS.get(operation)
    if found is None:
        hints = get_type_hints(operation, include_extras=True)
        found = tuple(_argument(each.name, hints[each.name], each.default) for each in fields(operation))
        _ARGUMENTS[operation] = found
    return found


_ARGUMENTS: dict[type, tuple[Argument, ...]] = {}


def _argument(name: str, hint: Any, default: Any) -> Argument:
    notes: list[Any] = []
    is_optional = False
    while (origin := get_origin(hint)) is Annotated or origin in (Union, UnionType):
        inner = get_args(hint)
        if origin is Annotated:
            hint, *more = inner
            notes += more
        elif NoneType in inner:
            is_optional = True
            hint = Union[tuple(each for each in inner if each is not NoneType)]  # noqa: UP007
        else:
            break
    description = next((note for note in notes if isinstance(note, str)), "")
    kind = next((note for note in notes if isinstance(note, Kind)), None)
    local_only = next((note for note in notes if isinstance(note, LocalOnly)), None)
    return Argument(name, hint, kind, description, default, is_optional, local_only)


def result_of(operation: type) -> Any:
    """The type of the result of an operation."""
    for base in vars(operation)["__orig_bases__"]:
        if get_origin(base) is Operation:
            return get_args(base)[0]
    raise TypeError(f"{operation.__name__} must name its result: Operation[…]")


def shared_arguments(request: Any, other: type) -> dict[str, Any]:
    """The arguments of a request that another operation, or any dataclass, has as well."""
    names = {each.name for each in fields(other)}
    return {each.name: getattr(request, each.name) for each in fields(request) if each.name in names}
