"""Metadata: a small JSON object that callers attach to conversations and entries.

Recollect stores, returns and exports it, and search filters by it. It is not used for learning or ranking.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from ..errors import InvalidTypeError, InvalidValueError
from ..sql.columns import ColumnJSON, json_to_column

MOST_BYTES = 16_384
"""The largest size of a metadata object as compact JSON in UTF-8."""
MOST_LEVELS = 5
"""The most levels of nesting. The metadata object itself is the first level."""
_LONGEST_KEY = 255  # characters
_LARGEST = 2**63  # integers below it are exact in every database and in most JSON readers
_UNFIT = re.compile("[\0\ud800-\udfff]")


def read_metadata(name: str, given: object) -> dict[str, Any]:
    """Validate metadata and return a copy; `None` becomes an empty object.

    Raises `InvalidTypeError` or `InvalidValueError`, which name the broken rule, but no key and no value.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidTypeError(f"{name} must be an object, not {type(given).__name__}")
    read = _copy_object(name, given, 1)
    if len(_encode(read).encode()) > MOST_BYTES:
        raise InvalidValueError(f"{name} must be at most {MOST_BYTES:,} bytes as JSON")
    return read


def metadata_to_column(metadata: Mapping[str, Any]) -> ColumnJSON | None:
    """Metadata as a column value; `None` if it is empty."""
    return json_to_column(dict(metadata), allow_nan=False) if metadata else None


def has_metadata(wanted: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Whether some metadata has equal values under all wanted keys."""
    return all(key in metadata and is_same_json(metadata[key], value) for key, value in wanted.items())


def is_same_json(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal. In JSON, unlike in Python, `true` is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_same_json(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(is_same_json, one, other))
    return bool(one == other)


def _encode(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _copy_object(name: str, given: Mapping[Any, Any], level: int) -> dict[str, Any]:
    return {_check_key(name, key): _copy(name, value, level) for key, value in given.items()}


def _copy(name: str, value: object, level: int) -> Any:
    """A deep copy of a JSON value: later changes by the caller have no effect."""
    if isinstance(value, Mapping | list | tuple):
        if level == MOST_LEVELS:
            raise InvalidValueError(f"{name} must not be nested deeper than {MOST_LEVELS} levels")
        if isinstance(value, Mapping):
            return _copy_object(name, value, level + 1)
        return [_copy(name, each, level + 1) for each in value]
    return _check_scalar(name, value)


def _check_key(name: str, key: object) -> str:
    if not isinstance(key, str):
        raise InvalidTypeError(f"keys in {name} must be strings, not {type(key).__name__}")
    if not 0 < len(key) <= _LONGEST_KEY:
        raise InvalidValueError(f"keys in {name} must have 1 to {_LONGEST_KEY} characters")
    return _check_string(name, key)


def _check_scalar(name: str, value: object) -> object:
    if isinstance(value, str):
        return _check_string(name, value)
    if isinstance(value, float) and value - value != 0:
        raise InvalidValueError(f"numbers in {name} must be finite")
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        raise InvalidValueError(f"integers in {name} must fit in 64 bits")
    if value is not None and not isinstance(value, bool | int | float):
        raise InvalidTypeError(f"{name} must hold JSON values, not {type(value).__name__}")
    return value


def _check_string(name: str, text: str) -> str:
    if _UNFIT.search(text):
        raise InvalidValueError(f"strings in {name} must hold neither NUL characters nor lone surrogates")
    return text
