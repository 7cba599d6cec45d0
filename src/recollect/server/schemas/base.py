"""What all requests and answers share: how strictly they are read, and the kinds of fields they have."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, TypeAlias

import msgspec
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from starlette.responses import Response

from ...memory.conversation import read_name
from ...memory.metadata import MOST_BYTES, MOST_LEVELS, read_metadata
from ...memory.times import read_bound, read_date, read_time

PAGE_SIZE = 50
"""How many rows are on a page, if nobody says."""
HIT_LIMIT = 10
"""How many hits a search gives, if nobody says."""

NO_NUL = r"^[^\u0000]+$"
SOMETHING = r"\S"
_LONGEST_ID = 4096  # characters
_LONGEST_KEY = 255
MAX_TEXT_LENGTH = 1_048_576  # characters; a body is limited too
_LONGEST_TIME = 64
_LONGEST_CURSOR = 2048

MAX_ITEMS = 10_000
"""How many items a list of a request may have at most, whatever is configured.

Each of them has `fail_fast` besides: the first item that is wrong is told, and not a million of them.
"""


class _Closed(BaseModel):
    """Refuses names that it does not know, and tells the first of them."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _with_one_unknown_name(cls, given: Any) -> Any:
        """A body may have hundreds of thousands of unknown names: one error is enough to refuse it."""
        names = given if isinstance(given, dict) else ()
        unknown = next((name for name in names if name not in cls.model_fields), None)
        if unknown is None:
            return given
        return {name: given[name] for name in (*cls.model_fields, unknown) if name in given}


class RequestBody(_Closed):
    """A body of a request: what it does not know, and what is of another type, is refused by name."""

    model_config = ConfigDict(strict=True)


class QueryParameters(_Closed):
    """The query of a request: texts are read as what they stand for, and unknown names are refused."""


class ResponseBody(BaseModel):
    """A body of an answer. It documents: answers are made from what the store tells, and not read again."""


def json_response(told: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON, made at once: what the store tells needs no second look."""
    return Response(encode_json(told), status, headers, "application/json")


def encode_json(told: Any) -> bytes:
    """JSON of anything that is stored; halves of characters, which UTF-8 has not, are escaped."""
    try:
        return msgspec.json.encode(told)
    except UnicodeEncodeError:
        return json.dumps(told, separators=(",", ":"), default=datetime.isoformat).encode()


def with_examples(*examples: dict[str, Any]) -> ConfigDict:
    """The configuration of a model with examples, to stand beside that of its base."""
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


OwnerId: TypeAlias = Annotated[
    str,
    Field(
        min_length=1,
        max_length=_LONGEST_ID,
        pattern=NO_NUL,
        description="Any text, as you name it yourself.",
    ),
]
Key: TypeAlias = Annotated[str, Field(min_length=1, max_length=_LONGEST_KEY, pattern=NO_NUL)]
Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=MAX_TEXT_LENGTH, pattern=SOMETHING)]
Time: TypeAlias = Annotated[
    str,
    Field(
        max_length=_LONGEST_TIME,
        description="ISO 8601; UTC where it names no zone.",
        json_schema_extra={"format": "date-time"},
    ),
    AfterValidator(_is_time),
]
Bound: TypeAlias = Annotated[
    str,
    Field(
        max_length=_LONGEST_TIME, description="A time in ISO 8601, or a day, a month or a year as a whole."
    ),
    AfterValidator(_is_bound),
]
Date: TypeAlias = Annotated[
    str,
    Field(pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$", description="A day, a month or a year."),
    AfterValidator(_is_date),
]
Name: TypeAlias = Annotated[
    str,
    Field(min_length=1, max_length=_LONGEST_KEY, description="One line of text."),
    AfterValidator(_is_name),
]
Metadata: TypeAlias = Annotated[
    dict[str, Any],
    Field(
        description=f"Your own JSON object: at most {MOST_BYTES:,} bytes, nested at most {MOST_LEVELS} deep."
    ),
    AfterValidator(_read_metadata),
]
Timestamp: TypeAlias = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Cursor: TypeAlias = Annotated[
    str,
    Field(
        max_length=_LONGEST_CURSOR, description="The `next_cursor` of the page before; the first has none."
    ),
]
NextCursor: TypeAlias = Annotated[
    str | None, Field(description="Where the next page goes on; null on the last one.")
]
PageSize: TypeAlias = Annotated[int, Field(ge=1, description="How many at most.")]


class PageQuery(QueryParameters):
    """The query of a list."""

    cursor: Cursor | None = None
    limit: PageSize | None = None


class OwnedPageQuery(PageQuery):
    """The query of a list that one agent and one user may narrow."""

    agent_id: OwnerId | None = None
    user_id: OwnerId | None = None
