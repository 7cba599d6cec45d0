"""How a conversation is held: its strategy, whether memories are injected, and where its provider has it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Literal, TypeAlias

from ..errors import InvalidTypeError, InvalidValueError
from ..sql.columns import ColumnJSON, json_to_column
from .conversation import check_key


class _Unchanged(Enum):
    UNCHANGED = "UNCHANGED"

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = _Unchanged.UNCHANGED
"""What is given for a setting that stays as it is; `None` clears it."""
Unchanged: TypeAlias = Literal[_Unchanged.UNCHANGED]


@dataclass(frozen=True)
class ConversationSettings:
    """What holds for one conversation; `None` where it is left to the agent."""

    conversation_id: str
    memory_strategy: dict[str, Any] | None = field(default=None)
    memory_injection: bool | None = None
    provider_conversation_id: str | None = None
    version: int = 1
    """Counts the changes, from 1 on."""


def strategy_to_column(given: Mapping[str, Any] | None) -> ColumnJSON | None:
    """A strategy, as it is stored: any JSON object."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InvalidTypeError(f"memory_strategy must be an object, not {type(given).__name__}")
    try:
        return json_to_column(dict(given), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValueError("memory_strategy must be an object as JSON has it") from error


def injection_to_column(given: bool | None) -> str | None:
    """Whether memories are injected, as it is stored."""
    if given is None:
        return None
    if not isinstance(given, bool):
        raise InvalidTypeError(f"memory_injection must be true or false, not {type(given).__name__}")
    return json.dumps(given)


def provider_id_to_column(given: str | None) -> str | None:
    """The id that the provider has for a conversation."""
    return check_key("provider_conversation_id", given)
