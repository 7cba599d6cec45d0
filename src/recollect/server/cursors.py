"""Validates the cursors that callers send back."""

from collections.abc import Sequence
from typing import Any

from ..cursors import decode_cursor
from .problems import Problem


def read_cursor(kind: str, cursor: str, *types: type) -> Sequence[Any]:
    """The position in a cursor of this kind. Raises a `Problem` that names the field for any other text."""
    place = decode_cursor(cursor)
    fits = (
        isinstance(place, list)
        and len(place) == len(types) + 1
        and place[0] == kind
        and all(type(value) is wanted for value, wanted in zip(place[1:], types, strict=True))
    )
    if not fits:
        error = {"field": "query.cursor", "message": "must be the next_cursor of a page of this list"}
        raise Problem(
            "validation_failed",
            "query.cursor: must be the next_cursor of a page of this list",
            errors=[error],
        )
    return list(place[1:])
