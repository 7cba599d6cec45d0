"""Base classes of request and response bodies, and the types of their fields."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, TypeAlias

import msgspec
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from starlette.responses import Response

from ...memory.conversation import read_name
from ...memory.metadata import MOST_BYTES, MOST_LEVELS, read_metadata
from ...memory.tags import LONGEST_TAG, MOST_TAGS, read_tags
from ...memory.times import read_bound, read_date, read_time

PAGE_SIZE = 50
"""The default number of rows on a page."""
HIT_LIMIT = 10
"""The default number of hits of a search."""

MAX_WAIT = 30
"""Seconds that a request may wait for learning to finish."""

NO_NUL = r"^[^\u0000]+$"
NOT_BLANK = r"\S"
_MAX_ID_LENGTH = 4096  # characters
_MAX_KEY_LENGTH = 255
MAX_TEXT_LENGTH = 1_048_576  # characters; the size of a body is limited, too
_MAX_TIME_LENGTH = 64
_MAX_CURSOR_LENGTH = 2048

MAX_ITEMS = 10_000
"""The most items of any list in a request, independent of the settings.

Such lists also have `fail_fast`: validation stops at the first invalid item, so that a body with a million of
them is refused quickly.
"""


class _Strict(BaseModel):
    """Refuses unknown names. The error names the first of them."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)

    _names: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        cls._names = frozenset(cls.model_fields)

    @model_validator(mode="before")
    @classmethod
    def _keep_one_unknown_name(cls, given: Any) -> Any:
        """Drop all unknown names but one: a body may have hundreds of thousands, and one error is enough."""
        if not isinstance(given, dict) or given.keys() <= cls._names:
            return given
        unknown = next(name for name in given if name not in cls._names)
        return {name: given[name] for name in (*cls.model_fields, unknown) if name in given}


class RequestBody(_Strict):
    """A request body. Unknown names and values of another type are refused."""

    model_config = ConfigDict(strict=True)


class QueryParameters(_Strict):
    """The query string of a request. Values are converted from text; unknown names are refused."""


class ResponseBody(BaseModel):
    """A response body. It serves as documentation: responses are not validated against it."""


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response, encoded without validation."""
    return Response(encode_json(value), status, headers, "application/json")


def encode_json(value: Any) -> bytes:
    """JSON of any stored value. Lone surrogates, which UTF-8 cannot encode, are escaped."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), default=datetime.isoformat).encode()


def with_examples(*examples: dict[str, Any]) -> ConfigDict:
    """A model configuration with examples, merged with that of the base class."""
    return ConfigDict(json_schema_extra={"examples": list(examples)})


def _is_time(given: str) -> str:
    read_time("it", given)
    return given


def _is_bound(given: str) -> str:
    read_bound("it", given, is_end=False)
    return given


def _is_date(given: str) -> str:
    read_date("it", given)
    return given


def _is_name(given: str) -> str:
    read_name("it", given)
    return given


def _read_metadata(given: dict[str, Any]) -> dict[str, Any]:
    try:
        return read_metadata("it", given)
    except TypeError as error:
        raise ValueError(str(error)) from error


def _read_tags(given: list[str]) -> list[str]:
    return list(read_tags("it", given))


OwnerId: TypeAlias = Annotated[
    str,
    Field(
        min_length=1,
        max_length=_MAX_ID_LENGTH,
        pattern=NO_NUL,
        description="An id of your choice; any text.",
    ),
]
Key: TypeAlias = Annotated[str, Field(min_length=1, max_length=_MAX_KEY_LENGTH, pattern=NO_NUL)]
Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=MAX_TEXT_LENGTH, pattern=NOT_BLANK)]
Time: TypeAlias = Annotated[
    str,
    Field(
        max_length=_MAX_TIME_LENGTH,
        description="ISO 8601; UTC if it has no time zone.",
        json_schema_extra={"format": "date-time"},
    ),
    AfterValidator(_is_time),
]
Bound: TypeAlias = Annotated[
    str,
    Field(max_length=_MAX_TIME_LENGTH, description="A time in ISO 8601, or a whole day, month or year."),
    AfterValidator(_is_bound),
]
Date: TypeAlias = Annotated[
    str,
    Field(pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$", description="A day, month or year."),
    AfterValidator(_is_date),
]
Name: TypeAlias = Annotated[
    str,
    Field(min_length=1, max_length=_MAX_KEY_LENGTH, description="One line of text."),
    AfterValidator(_is_name),
]
Metadata: TypeAlias = Annotated[
    dict[str, Any],
    Field(
        description=f"Your own JSON object: at most {MOST_BYTES:,} bytes, nested at most {MOST_LEVELS} deep."
    ),
    AfterValidator(_read_metadata),
]
Tags: TypeAlias = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=LONGEST_TAG)]],
    Field(
        max_length=MOST_TAGS,
        fail_fast=True,
        description=f"At most {MOST_TAGS} short texts of at most {LONGEST_TAG} characters each.",
    ),
    AfterValidator(_read_tags),
]
Timestamp: TypeAlias = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Cursor: TypeAlias = Annotated[
    str,
    Field(
        max_length=_MAX_CURSOR_LENGTH,
        description="The `next_cursor` of the previous page; absent for the first page.",
    ),
]
NextCursor: TypeAlias = Annotated[
    str | None, Field(description="The `cursor` of the next page; null on the last page.")
]
PageSize: TypeAlias = Annotated[int, Field(ge=1, description="The most items to return.")]


class PageQuery(QueryParameters):
    """The query of a paged list."""

    cursor: Cursor | None = None
    limit: PageSize | None = None


class OwnedPageQuery(PageQuery):
    """The query of a paged list that may be limited to an agent and a user."""

    agent_id: OwnerId | None = None
    user_id: OwnerId | None = None
