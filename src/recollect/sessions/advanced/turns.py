"""The user turns of a branch, as callers see them."""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...items import Item, text_of

_PREVIEW = 100  # characters
_LONGEST_PATTERN = 1000  # characters


class UserTurn(NamedTuple):
    """A turn: its number, the user message it starts with, and when that was stored."""

    turn: int
    item: Item
    timestamp: Any


def describe_turns(turns: Sequence[UserTurn]) -> list[dict[str, Any]]:
    """Each turn as a dict: `turn`, `content` (shortened), `full_content`, `timestamp`, `can_branch`."""
    return [_described(turn, _PREVIEW) for turn in turns]


def matching_turns(turns: Sequence[UserTurn], text: str) -> list[dict[str, Any]]:
    """The turns whose user message contains a text, in any case, as dicts with the whole `content`.

    Every turn contains the empty text.
    """
    if not isinstance(text, str):
        raise ValueError(f"the text to find must be a string, not {text!r}")
    pattern = re.compile(re.escape(text), re.IGNORECASE)
    return [_described(turn) for turn in turns if pattern.search(text_of(turn.item))]


def pattern_for(text: str) -> str:
    """A pattern that the stored form of every turn with this text matches, for the database to choose by.

    JSON may write other characters than these in several ways, and databases refuse patterns that are very
    long: then the pattern matches everything.
    """
    is_plain = text.isascii() and text.isprintable() and '"' not in text and "\\" not in text
    if not is_plain or len(text) > _LONGEST_PATTERN:
        return "%"
    escaped = text.replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _described(turn: UserTurn, length: int | None = None) -> dict[str, Any]:
    content = turn.item.get("content", "")
    shown = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return {
        "turn": turn.turn,
        "content": shown if length is None or len(shown) <= length else shown[:length] + "...",
        "full_content": content,
        "timestamp": turn.timestamp,
        "can_branch": True,
    }
