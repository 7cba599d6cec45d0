"""Content parts: a message that is a list of texts, images, files and other parts.

The texts become the content of the message, which is searched and learned from. Every other part becomes an
attachment. Inline data and long strings in it are replaced by a reference with their size and SHA-256.
Recollect stores no files.
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from ..errors import InvalidTypeError, InvalidValueError
from ..items import text_of
from ..sql.columns import ColumnJSON, json_to_column
from .metadata import MOST_LEVELS, read_metadata

Attachment = dict[str, Any]

TEXT_TYPES = frozenset({"text", "input_text", "output_text", "refusal"})
MOST_PARTS = 100
"""The most parts of one message."""
_LONGEST_STRING = 2048  # characters that are stored in an attachment
_LONGEST_TYPE = 64
_DATA_URL = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),", re.IGNORECASE)
_LEVELS_WITHIN = MOST_LEVELS - 1  # a deeper part becomes one reference


def read_parts(name: str, given: Sequence[Any]) -> tuple[str, tuple[Attachment, ...]]:
    """Parse content parts into a text and attachments. Each attachment has its index among the parts.

    The content of a message without text is the types of its attachments, such as `[image_url]`.
    """
    if not 0 < len(given) <= MOST_PARTS:
        raise InvalidValueError(f"content of {name} must have 1 to {MOST_PARTS} parts")
    types = [_type_of(f"part {place} of {name}", part) for place, part in enumerate(given)]
    texts = [part for part, kind in zip(given, types, strict=True) if kind in TEXT_TYPES]
    attachments = tuple(
        _attachment(f"part {place} of {name}", given[place], place)
        for place, kind in enumerate(types)
        if kind not in TEXT_TYPES
    )
    text = text_of({"role": "user", "content": texts})
    return text if text.strip() or not attachments else _named(attachments), attachments


def read_attachments(name: str, given: object) -> tuple[Attachment, ...]:
    """Parse attachments as `Message.to_dict` returns them."""
    if given is None:
        return ()
    if isinstance(given, str | bytes) or not isinstance(given, Sequence) or len(given) > MOST_PARTS:
        raise InvalidTypeError(f"attachments of {name} must be a list of at most {MOST_PARTS} objects")
    return tuple(read_metadata(f"attachments of {name}", each) for each in given)


def attachments_to_column(attachments: Sequence[Attachment]) -> ColumnJSON | None:
    """Attachments as a column value; `None` if there are none."""
    return json_to_column(list(attachments), allow_nan=False) if attachments else None


def _named(attachments: Sequence[Attachment]) -> str:
    return " ".join(f"[{each['type']}]" for each in attachments)


def _type_of(name: str, part: object) -> str:
    if not isinstance(part, Mapping):
        raise InvalidTypeError(f"{name} must be an object, not {type(part).__name__}")
    kind = part.get("type")
    if not isinstance(kind, str) or not 0 < len(kind) <= _LONGEST_TYPE or not kind.isprintable():
        raise InvalidValueError(f"{name} must have a type, such as text or image_url")
    if kind in TEXT_TYPES and not isinstance(part.get("refusal" if kind == "refusal" else "text"), str):
        raise InvalidTypeError(f"{name} must have its text as a string")
    return kind


def _attachment(name: str, part: Mapping[str, Any], place: int) -> Attachment:
    """A part with references in place of inline data. A part that is still too large is one reference."""
    try:
        return read_metadata(name, {**_without_data(part, 1), "part_index": place})
    except (TypeError, ValueError):
        return {"type": part["type"], "part_index": place, **_reference(_encoded(name, part))}


def _without_data(value: Any, level: int) -> Any:
    if isinstance(value, str):
        return _without_data_in(value)
    if isinstance(value, Mapping) and level <= _LEVELS_WITHIN:
        return {key: _without_data(each, level + 1) for key, each in value.items()}
    if isinstance(value, list | tuple) and level <= _LEVELS_WITHIN:
        return [_without_data(each, level + 1) for each in value]
    return value


def _without_data_in(text: str) -> Any:
    if found := _DATA_URL.match(text):
        data = _decode(text[found.end() :], "base64" in found[2].lower())
        return {"media_type": found[1][:_LONGEST_TYPE] or "text/plain", **_reference(data)}
    if len(text) > _LONGEST_STRING:
        return _reference(_decode(text, is_base64=True))
    return text


def _decode(text: str, is_base64: bool) -> bytes:
    """The bytes of a text: decoded if it is base64, otherwise as UTF-8."""
    if not is_base64:
        return unquote_to_bytes(text)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text.encode("utf-8", "surrogatepass")


def _encoded(name: str, part: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(part, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidTypeError(f"{name} must be a JSON object") from error


def _reference(data: bytes) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
