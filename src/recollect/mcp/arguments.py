"""The arguments of tools, with limits and error messages for models."""

from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from ..memory.conversation import Role, read_name
from ..memory.entry import ContentType
from ..memory.metadata import read_metadata
from ..memory.search.relevance import DEFAULT_CUT
from ..memory.tags import MOST_TAGS, read_tags
from ..memory.times import read_bound, read_date
from ..text_checks import check_text

MAX_TEXT_LENGTH = 1000  # characters of a statement or a query
MAX_LISTED = 50
MAX_RECALLED = 20

_MAX_INTEGER = 2**53  # the largest integer that every JSON parser reads exactly
_MAX_NAME_LENGTH = 40  # characters of an unknown argument in an error message


def _storable(text: str) -> str:
    return check_text("it", text)


def _date(text: str | None) -> str | None:
    return read_date("it", text or None)


def _tags(given: tuple[str, ...]) -> tuple[str, ...]:
    return read_tags("it", given)


def _metadata(given: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if given is None else read_metadata("it", given)


def _name(text: str | None) -> str | None:
    return read_name("it", text or None)


def _bound(text: str | None) -> str | None:
    if text:
        read_bound("it", text, is_end=False)
    return text or None


_Words: TypeAlias = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TEXT_LENGTH),
    AfterValidator(_storable),
]
_EntryId: TypeAlias = Annotated[
    str,
    StringConstraints(strip_whitespace=True, pattern=r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"),
    AfterValidator(str.lower),
]
_Date: TypeAlias = Annotated[str | None, AfterValidator(_date)]
_Tags: TypeAlias = Annotated[tuple[str, ...], Field(max_length=MOST_TAGS), AfterValidator(_tags)]
_Metadata: TypeAlias = Annotated[dict[str, Any] | None, AfterValidator(_metadata)]
_Name: TypeAlias = Annotated[str | None, AfterValidator(_name)]
_Bound: TypeAlias = Annotated[str | None, AfterValidator(_bound)]

_KINDS = (
    "profile: who the user is; event: what happened; mind: what they think, feel or want;"
    " instruction: how they want to be answered from now on."
)


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class RememberArguments(_Arguments):
    """The arguments of `remember`."""

    text: _Words = Field(
        description='One statement about the user in the third person, such as "The user lives in Lisbon."'
    )
    kind: ContentType = Field(description=_KINDS)
    happened_on: _Date = Field(
        default=None, description="For an event its date, such as 2024-05-07, 2024-05 or 2024; else null."
    )
    tags: _Tags = Field(default=(), description="A few short texts to find it by, such as work or health.")
    expires_on: _Date = Field(
        default=None, description="The last day on which it holds, such as 2024-05-07; null if it has no end."
    )


class RecallArguments(_Arguments):
    """The arguments of `recall`."""

    query: _Words = Field(description="A question or a few keywords.")
    limit: int = Field(
        default=10, ge=1, le=MAX_RECALLED, description="The most entries, and the most messages."
    )
    tags: _Tags = Field(default=(), description="Only what has all of these tags.")
    metadata: _Metadata = Field(
        default=None, description="Only what has these values under these metadata keys."
    )
    role: Role | None = Field(default=None, description="Only what a speaker of this role said.")
    name: _Name = Field(default=None, description="Only what the speaker of this name said.")
    since: _Bound = Field(default=None, description="Only from this day, month, year or time on.")
    until: _Bound = Field(default=None, description="Only up to this day, month, year or time.")
    min_relevance: float = Field(
        default=DEFAULT_CUT,
        ge=0,
        le=1,
        description="Nothing is returned if less is likely to be about the query; 0 returns what is nearest.",
    )


class EntryArguments(_Arguments):
    """The arguments of `forget` and `why`."""

    entry_id: _EntryId = Field(description="The id of the entry, as returned by recall and list.")


class ListArguments(_Arguments):
    """The arguments of `list`."""

    kind: ContentType | None = Field(default=None, description=f"Only entries of this kind. {_KINDS}")
    after: int | None = Field(
        default=None,
        ge=0,
        le=_MAX_INTEGER,
        description="To continue a list: the next_after of the previous part.",
    )
    limit: int = Field(default=20, ge=1, le=MAX_LISTED, description="The most entries.")


class PageArguments(_Arguments):
    """The arguments of `page`: none."""


def describe_errors(error: ValidationError) -> str:
    """The invalid arguments of a call and the reasons, without their values."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(dict.fromkeys(map(_describe, errors)))


def _describe(error: ErrorDetails) -> str:
    name = str(error["loc"][0])[:_MAX_NAME_LENGTH] if error["loc"] else "the arguments"
    if error["type"] == "extra_forbidden":
        return f"there is no argument {name!a}"
    if error["type"] == "string_pattern_mismatch":
        return f"{name} must be an id from recall or list, such as 1979ef71-cfde-470f-8d21-e398915e2195"
    return f"{name}: {error['msg'].removeprefix('Value error, ')}"
