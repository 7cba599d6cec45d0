"""Cursors: positions in the lists of the service, as its clients send them back."""

import base64
import binascii
import json
from typing import Any

_MAX_LENGTH = 2048  # characters


def make_cursor(kind: str, *place: str | int) -> str:
    """A cursor for a position in a kind of list."""
    text = json.dumps([kind, *place], separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> Any:
    """The list in a cursor: its kind and its position; `None` for any other text."""
    if len(cursor) > _MAX_LENGTH:
        return None
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        return json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (UnicodeError, binascii.Error, ValueError, RecursionError):
        return None
