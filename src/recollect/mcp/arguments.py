"""The arguments of tools, with limits and error messages for models."""

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from ..memory.entry import ContentType
from ..memory.times import read_date
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
    expires_on: _Date = Field(
        default=None, description="The last day on which it holds, such as 2024-05-07; null if it has no end."
    )


class RecallArguments(_Arguments):
    """The arguments of `recall`."""

    query: _Words = Field(description="A question or a few keywords.")
    limit: int = Field(
        default=10, ge=1, le=MAX_RECALLED, description="The most entries, and the most messages."
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
