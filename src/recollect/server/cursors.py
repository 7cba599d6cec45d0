"""Where a page ended: opaque to callers, and checked when it comes back."""

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any

from .problems import Problem

_LONGEST = 2048  # characters


def make_cursor(kind: str, *place: str | int) -> str:
    """A cursor after a place in a list of a kind."""
    told = json.dumps([kind, *place], separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(told.encode()).decode().rstrip("=")


def read_cursor(kind: str, cursor: str, *types: type) -> Sequence[Any]:
    """The place that a cursor of this kind tells; anything else is a problem that names the field."""
    place = _decoded(cursor)
    fits = (
        isinstance(place, list)
        and len(place) == len(types) + 1
        and place[0] == kind
        and all(type(value) is wanted for value, wanted in zip(place[1:], types, strict=True))
    )
    if not fits:
        error = {"field": "query.cursor", "message": "must be the next_cursor of a page of this list"}
        raise Problem("validation_failed", "cursor is not one of this list", errors=[error])
    return list(place[1:])


def _decoded(cursor: str) -> Any:
    if len(cursor) > _LONGEST:
        return None
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        return json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (UnicodeError, binascii.Error, ValueError, RecursionError):
        return None
