"""Memory strategies in requests: one schema per mode."""

from typing import Annotated, Any, Literal, Self, TypeAlias

from fastapi.exceptions import RequestValidationError
from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

from ...strategies.configuration import lower_mode, strategy_from_config
from .base import QueryParameters, RequestBody, with_examples

_MOST_TOKENS = 10_000_000
_Count: TypeAlias = Annotated[int, Field(ge=1, le=_MOST_TOKENS)]
_ToolName: TypeAlias = Annotated[str, Field(min_length=1, max_length=255)]
_ToolNames: TypeAlias = Annotated[list[_ToolName], Field(max_length=100, fail_fast=True)]


class _Strategy(RequestBody):
    """A mode with its parameters. Contradictory parameters are refused."""

    mode: str

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        self._check_names()
        strategy_from_config(self.to_config())
        return self

    def _check_names(self) -> None:
        """Refuse contradictory tool names without quoting them, as the library's own error would."""

    def to_config(self) -> dict[str, Any]:
        """The configuration for `strategy_from_config`."""
        return self.model_dump(exclude_none=True)


class NoStrategy(_Strategy):
    """The model sees everything."""

    mode: Literal["none"]


class _Budgeted(_Strategy):
    token_budget: _Count | None = None
    context_window_tokens: _Count | None = None
    token_remaining_pct: Annotated[float, Field(ge=0, lt=100)] | None = None


class _ByTurns(_Budgeted):
    max_user_turns: _Count | None = None
    keep_last_user_turns: Annotated[int, Field(ge=0, le=_MOST_TOKENS)] | None = None


class TrimStrategy(_ByTurns):
    """The model sees only the last turns."""

    model_config = with_examples({"mode": "trim", "max_user_turns": 20, "keep_last_user_turns": 5})

    mode: Literal["trim"]


class SummarizeStrategy(_ByTurns):
    """Like `trim`, with a summary of the cut turns before the remaining ones."""

    model_config = with_examples({"mode": "summarize", "max_user_turns": 20, "keep_last_user_turns": 5})

    mode: Literal["summarize"]
    summary_max_tokens: _Count | None = None
    summary_prefix: Annotated[str, Field(min_length=1, max_length=10_000)] | None = None


class CompactStrategy(_Budgeted):
    """Older turns lose the outputs of their tools."""

    model_config = with_examples({"mode": "compact", "compact_trigger_turns": 8, "compact_keep": 2})

    mode: Literal["compact"]
    compact_trigger_turns: _Count | None = None
    compact_keep: _Count | None = None
    compact_clear_tool_inputs: bool | None = None
    compact_exclude_tools: _ToolNames | None = None
    compact_include_tools: _ToolNames | None = None

    def _check_names(self) -> None:
        if set(self.compact_exclude_tools or ()) & set(self.compact_include_tools or ()):
            raise ValueError("compact_exclude_tools and compact_include_tools must not name the same tool")


def _lower_mode(given: Any) -> Any:
    """The request with its mode in lower case, which selects the schema."""
    return (
        {**given, "mode": lower_mode(given["mode"])} if isinstance(given, dict) and "mode" in given else given
    )


_AnyMode: TypeAlias = Annotated[
    NoStrategy | TrimStrategy | SummarizeStrategy | CompactStrategy, Field(discriminator="mode")
]
MemoryStrategy: TypeAlias = Annotated[_AnyMode, BeforeValidator(_lower_mode)]

_ANY: TypeAdapter[MemoryStrategy] = TypeAdapter(MemoryStrategy)


class StrategyQuery(QueryParameters):
    """A strategy in a query string, for a dry run. Without a mode there is none."""

    mode: Annotated[Literal["none", "trim", "summarize", "compact"] | None, BeforeValidator(lower_mode)] = (
        Field(None, description="The strategy to preview; absent for that of the conversation.")
    )
    max_user_turns: _Count | None = None
    keep_last_user_turns: Annotated[int, Field(ge=0, le=_MOST_TOKENS)] | None = None
    summary_max_tokens: _Count | None = None
    summary_prefix: Annotated[str, Field(min_length=1, max_length=10_000)] | None = None
    compact_trigger_turns: _Count | None = None
    compact_keep: _Count | None = None
    compact_clear_tool_inputs: bool | None = None
    compact_exclude_tools: _ToolNames | None = None
    compact_include_tools: _ToolNames | None = None
    token_budget: _Count | None = None
    context_window_tokens: _Count | None = None
    token_remaining_pct: Annotated[float, Field(ge=0, lt=100)] | None = None

    def to_config(self) -> dict[str, Any] | None:
        """The configuration, validated like one in a body; `None` if the query names none."""
        given = self.model_dump(exclude_none=True)
        if not given:
            return None
        try:
            return _ANY.validate_python(given).to_config()
        except ValidationError as error:
            raise RequestValidationError([_of_query(each) for each in error.errors()]) from error


def _of_query(error: Any) -> dict[str, Any]:
    """A validation error with its place in the query, which has no level for the mode.

    An error about several fields is attributed to the first one that its message names.
    """
    named = (word for word in error["msg"].split() if word in StrategyQuery.model_fields)
    return {**error, "loc": ("query", *(error["loc"][1:] or (next(named, "mode"),)))}
