"""What a model may give to a tool: bounded, and told in words where it is wrong."""

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from ..memory.entry import ContentType
from ..memory.times import read_date
from ..text_checks import check_text

LONGEST_TEXT = 1000  # characters of what is remembered at once, or asked for
MOST_LISTED = 50
MOST_RECALLED = 20

_LAST = 2**53  # the largest whole number that every JSON holds exactly
_LONGEST_NAME = 40  # characters of the name of an argument that nobody knows


def _storable(text: str) -> str:
    return check_text("it", text)


def _date(text: str | None) -> str | None:
    return read_date("it", text or None)


_Words: TypeAlias = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_TEXT),
    AfterValidator(_storable),
]
_EntryId: TypeAlias = Annotated[
    str,
    StringConstraints(strip_whitespace=True, pattern=r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"),
    AfterValidator(str.lower),
]
_Date: TypeAlias = Annotated[str | None, AfterValidator(_date)]

_KINDS = "profile: who the user is; event: what happened; mind: what they think, feel or want."


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Remember(_Arguments):
    """What `remember` is given."""

    text: _Words = Field(
        description='One statement about the user in the third person, such as "The user lives in Lisbon."'
    )
    kind: ContentType = Field(description=_KINDS)
    happened_on: _Date = Field(
        default=None, description="For an event its date, such as 2024-05-07, 2024-05 or 2024; else null."
    )


class Recall(_Arguments):
    """What `recall` is given."""

    query: _Words = Field(description="What to look for, as a question or a few words.")
    limit: int = Field(default=10, ge=1, le=MOST_RECALLED, description="Most entries, and most messages.")


class EntryGiven(_Arguments):
    """What `forget` and `why` are given."""

    entry_id: _EntryId = Field(description="The id of the entry, as recall and list tell it.")


class Listing(_Arguments):
    """What `list` is given."""

    kind: ContentType | None = Field(default=None, description=f"Only entries of this kind. {_KINDS}")
    after: int | None = Field(
        default=None,
        ge=0,
        le=_LAST,
        description="To go on with a list: the next_after that the part before told.",
    )
    limit: int = Field(default=20, ge=1, le=MOST_LISTED, description="Most entries.")


def tell_faults(error: ValidationError) -> str:
    """What is wrong with the arguments of a call, without what they were."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(dict.fromkeys(map(_tell, faults)))


def _tell(fault: ErrorDetails) -> str:
    name = str(fault["loc"][0])[:_LONGEST_NAME] if fault["loc"] else "the arguments"
    if fault["type"] == "extra_forbidden":
        return f"there is no argument {name!a}"
    if fault["type"] == "string_pattern_mismatch":
        return (
            f"{name} must be an id such as 1979ef71-cfde-470f-8d21-e398915e2195, as recall and list tell it"
        )
    return f"{name}: {fault['msg'].removeprefix('Value error, ')}"
