"""Cursors: opaque positions in a list, validated when a caller sends one back."""

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any

from .problems import Problem

_MAX_LENGTH = 2048  # characters


def make_cursor(kind: str, *place: str | int) -> str:
    """A cursor for a position in a kind of list."""
    text = json.dumps([kind, *place], separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(kind: str, cursor: str, *types: type) -> Sequence[Any]:
    """The position in a cursor of this kind. Raises a `Problem` that names the field for any other text."""
    place = _decode(cursor)
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


def _decode(cursor: str) -> Any:
    if len(cursor) > _MAX_LENGTH:
        return None
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        return json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (UnicodeError, binascii.Error, ValueError, RecursionError):
        return None
