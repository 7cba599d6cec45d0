"""The arguments of tools, with limits and error messages for models."""

from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    create_model,
)
from pydantic_core import ErrorDetails

from ..memory.conversation import read_name
from ..memory.entry import ContentType
from ..memory.metadata import read_metadata
from ..memory.operations.description import Argument, Kind, Operation, arguments_of
from ..memory.operations.lists import ListEntriesOf
from ..memory.operations.search import Recall
from ..memory.tags import MOST_TAGS, read_tags
from ..memory.times import read_bound, read_date
from ..text_checks import check_text

ArgumentsT = TypeVar("ArgumentsT", bound=BaseModel)
OperationT = TypeVar("OperationT", bound=Operation[Any])

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


_FORMS: dict[Kind | None, Any] = {
    Kind.QUESTION: _Words,
    Kind.BOUND: _Bound,
    Kind.NAME: _Name,
    Kind.METADATA: _Metadata,
    Kind.TAGS: _Tags,
    Kind.CHANCE: Annotated[float, Field(ge=0, le=1)],
}
"""The forms in which a model writes arguments. An empty text or list counts as absent."""
_NAMES = {"content_type": "kind"}


def _arguments_model(
    name: str, base: type[ArgumentsT], operation: type[Operation[Any]], *left_out: str
) -> type[ArgumentsT]:
    """The arguments of an operation, except those left out, and those of `base`."""
    fields: dict[str, Any] = {
        _NAMES.get(each.name, each.name): _field(each)
        for each in arguments_of(operation)
        if each.local_only is None and each.name not in left_out
    }
    return create_model(name, __base__=base, __doc__=f"The arguments of `{operation.__name__}`.", **fields)


def _field(argument: Argument) -> tuple[Any, Any]:
    form = _FORMS.get(argument.kind, argument.type)
    form = form | None if argument.is_optional and argument.kind is not Kind.TAGS else form
    words = argument.description
    if argument.name == "content_type":
        words = f"{words} {_KINDS}"
    if argument.is_required:
        return form, Field(description=words)
    return form, Field(default=() if argument.kind is Kind.TAGS else argument.default, description=words)


def request_from(operation: type[OperationT], given: BaseModel, **more: Any) -> OperationT:
    """The request that arguments mean. `more` has the arguments that a model does not choose."""
    names = {each.name: _NAMES.get(each.name, each.name) for each in arguments_of(operation)}
    values = {name: getattr(given, its) for name, its in names.items() if hasattr(given, its)}
    return operation(**{**values, **more})


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


class RecallLimit(_Arguments):
    """The argument of `recall` that its operation lacks."""

    limit: int = Field(
        default=10, ge=1, le=MAX_RECALLED, description="The most entries, and the most messages."
    )


RecallArguments = _arguments_model("RecallArguments", RecallLimit, Recall, "agent_id", "user_id", "budget")


class EntryArguments(_Arguments):
    """The arguments of `forget` and `why`."""

    entry_id: _EntryId = Field(description="The id of the entry, as returned by recall and list.")


class ListPart(_Arguments):
    """The part of a list."""

    after: int | None = Field(
        default=None,
        ge=0,
        le=_MAX_INTEGER,
        description="To continue a list: the next_after of the previous part.",
    )
    limit: int = Field(default=20, ge=1, le=MAX_LISTED, description="The most entries.")


ListArguments = _arguments_model(
    "ListArguments", ListPart, ListEntriesOf, "memory_id", "as_of", "include_retired", "after", "limit"
)


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
