"""Exact conversion of items to JSON and back.

The fast codec handles nearly every item. Each encoded item is decoded again and compared before anything is
written. An item that would be read back changed (NaN, tuples, integer keys, dates …) is refused with a
reason. Lone surrogates, which the fast codec does not accept, are encoded by the standard library.
"""

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from ..errors import InvalidItemError
from .shapes import Item

_DEEPEST = 200  # levels of nesting: decoding must also work deep in a call stack

_NON_ASCII = re.compile(r"[^\x00-\x7f]+")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def encode_items(items: Sequence[Any]) -> list[str]:
    """Encode each item as JSON. Raise `InvalidItemError` for an item that would be read back changed."""
    if not isinstance(items, list | tuple):
        raise InvalidItemError(f"items must be a list of JSON objects, not {type(items).__name__}")
    return [_encode_item(item, index) for index, item in enumerate(items)]


def _encode_item(item: Any, index: int) -> str:
    if not isinstance(item, dict):
        raise InvalidItemError(f"it is a {type(item).__name__}, not a JSON object (dict)", index)
    try:
        encoded = _encode(item)
        if _decode(encoded) == item and _is_shallow(item, encoded):
            return encoded.decode()
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        pass  # the slow path decides whether it can be stored, and if not, why
    return _encode_slowly(item, index)


def _encode_slowly(item: Item, index: int) -> str:
    try:
        reason = _why_not_json(item, "")
        if reason is None:
            encoded = json.dumps(item)
            if json.loads(encoded) == item:
                return encoded
            reason = "it holds the two halves of a character apart, and JSON would join them"
    except RecursionError:
        reason = "it is nested too deeply, or contains itself"
    except ValueError:
        reason = "it holds an integer with too many digits"
    raise InvalidItemError(reason, index)


def escape_non_ascii(encoded: str) -> str:
    """Return the same JSON in ASCII.

    Other characters occur only inside strings, where they can be escaped.
    """
    return encoded if encoded.isascii() else _NON_ASCII.sub(_escaped, encoded)


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


def _is_shallow(item: Item, encoded: bytes) -> bool:
    """Whether an item is not nested too deeply. Most items have too few brackets to need counting."""
    return encoded.count(b"{") + encoded.count(b"[") <= _DEEPEST or _depth(item) <= _DEEPEST


def _depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max((_depth(each) for each in inner if isinstance(each, dict | list)), default=0)


def _why_not_json(value: object, path: str, level: int = 1) -> str | None:
    """Return where and why a value does not survive a round trip through JSON, or `None` if it does."""
    if level > _DEEPEST + 1:
        raise RecursionError
    if value is None or isinstance(value, str | int):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{path} is {value}, which JSON cannot hold"
    if isinstance(value, list):
        reasons = (_why_not_json(element, f"{path}[{n}]", level + 1) for n, element in enumerate(value))
        return next(filter(None, reasons), None)
    if not isinstance(value, dict):
        return f"{path} is a {type(value).__name__}, which JSON cannot hold"
    for key, element in value.items():
        if not isinstance(key, str):
            return f"{path or 'it'} has the key {key!r}, and keys must be strings"
        name = key if key.isidentifier() else repr(key)
        if reason := _why_not_json(element, f"{path}.{name}" if path else name, level + 1):
            return reason
    return None


def decode_item(stored: bytes | str) -> Item | None:
    """Decode a stored item. Return `None` if it is not a JSON object."""
    try:
        item = _decode(stored)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        item = _decode_slowly(stored)
    except TypeError:  # a SQLite column can hold any type
        return None
    return item if type(item) is dict else None


def decode_joined(stored: bytes | str) -> list[Any] | None:
    """Decode JSON values joined by commas. Return `None` unless all of them are valid JSON."""
    try:
        values: list[Any] = _decode(f"[{stored}]" if isinstance(stored, str) else b"[%b]" % stored)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return values


def _decode_slowly(stored: bytes | str) -> object:
    """Decode what other software wrote with the standard library: NaN, infinities, lone surrogates."""
    try:
        return json.loads(stored)
    except (ValueError, RecursionError):
        return None
