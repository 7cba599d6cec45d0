"""Metadata as one field of a session's hash."""

from typing import Any

from ...items import decode_item, encode_items
from ..protocol import SessionMetadata, check_metadata

_TEXTS = ("user_id", "agent_id", "title")


def encode_metadata(metadata: SessionMetadata) -> str:
    """The JSON of metadata; `TypeError` or `ValueError` for what cannot be stored."""
    check_metadata(metadata)
    texts: dict[str, Any] = {name: getattr(metadata, name) for name in _TEXTS}
    return encode_items([{**texts, "data": dict(metadata.data)}])[0]


def decode_metadata(stored: bytes | None) -> SessionMetadata:
    """The metadata; empty where there is none, or what is there is none of ours."""
    fields = decode_item(stored) if stored else None
    if fields is None or set(fields) != {*_TEXTS, "data"} or type(fields["data"]) is not dict:
        return SessionMetadata()
    return SessionMetadata(**fields)
