"""Tags: short texts that callers attach to conversations and entries, to find them by."""

from collections.abc import Sequence, Set
from typing import Any

from ..errors import InvalidTypeError, InvalidValueError
from ..sql.columns import ColumnJSON, json_from_column, json_to_column

MOST_TAGS = 32
"""The most tags of one conversation or entry."""
LONGEST_TAG = 64
"""The most characters of a tag."""


def read_tags(name: str, given: object) -> tuple[str, ...]:
    """Validate tags and return each once, in their order; `None` becomes no tags.

    Raises `InvalidTypeError` or `InvalidValueError`, which name the broken rule, but no tag.
    """
    if given is None:
        return ()
    if isinstance(given, str | bytes) or not isinstance(given, Sequence | Set):
        raise InvalidTypeError(f"{name} must be a list of texts, not {type(given).__name__}")
    tags = tuple(dict.fromkeys(_check_tag(name, each) for each in given))
    if len(tags) > MOST_TAGS:
        raise InvalidValueError(f"{name} must be at most {MOST_TAGS}")
    return tags


def _check_tag(name: str, given: object) -> str:
    if not isinstance(given, str):
        raise InvalidTypeError(f"{name} must be texts, not {type(given).__name__}")
    if not 0 < len(given) <= LONGEST_TAG:
        raise InvalidValueError(f"each of {name} must have 1 to {LONGEST_TAG} characters")
    if given != given.strip() or not given.isprintable():
        raise InvalidValueError(f"each of {name} must be printable text without spaces around it")
    return given


def tags_to_column(tags: Sequence[str]) -> ColumnJSON | None:
    """Tags as a column value; `None` if there are none."""
    return json_to_column(list(tags)) if tags else None


def tags_from_column(stored: Any) -> tuple[str, ...]:
    """The tags of a row. Raises `ValueError` or `TypeError` if the column holds no tags."""
    return read_tags("tags", None if stored is None else json_from_column(stored))
