"""Notes as fields of a session's hash: so they are in its slot, live as long as it, and go with it."""

from collections.abc import Mapping
from typing import Any

from ...items import decode_item, encode_items
from ...text_checks import check_text
from ..protocol import Note


def field_of(key: str) -> str:
    """The field that holds the note of a key."""
    return f"recollect:note:{check_text('key', key)}"


def encode_note(data: Mapping[str, Any]) -> str:
    """The JSON of a note; `TypeError` for what cannot be stored. The script puts its version before it."""
    return encode_items([dict(data)])[0]


def decode_note(stored: bytes | None) -> Note | None:
    """A note from `version JSON`; `None` where there is none, or what is there is none of ours."""
    version, between, text = (stored or b"").partition(b" ")
    return Note(int(version), decode_item(text) or {}) if version.isdigit() and between else None
