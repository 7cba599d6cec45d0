"""Filters of a search over the values of items: pure functions."""

from collections.abc import Callable, Mapping, Sequence
from operator import ge, gt, le, lt
from typing import Any

from ....errors import InvalidValueError

_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
_OPERATORS = {"$eq", "$ne", *_COMPARE}


def check_filter(wanted: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Raise `InvalidValueError` if a filter has an operator that does not exist."""
    for condition in (wanted or {}).values():
        for name in condition if isinstance(condition, Mapping) else ():
            if str(name).startswith("$") and name not in _OPERATORS:
                raise InvalidValueError(f"a filter has no operator {name!r}: use one of {sorted(_OPERATORS)}")
    return wanted or {}


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether the fields of a value are as wanted. A field that is missing has the value `None`."""
    return all(_is_as_wanted(value.get(name), condition) for name, condition in wanted.items())


def _is_as_wanted(value: Any, condition: Any) -> bool:
    if isinstance(condition, Mapping):
        if any(str(name).startswith("$") for name in condition):
            return all(_compare(value, name, other) for name, other in condition.items())
        return isinstance(value, Mapping) and matches(value, condition)
    if isinstance(condition, list | tuple):
        return (
            isinstance(value, Sequence)
            and not isinstance(value, str)
            and len(value) == len(condition)
            and all(map(_is_as_wanted, value, condition))
        )
    return bool(value == condition)


def _compare(value: Any, operator: str, other: Any) -> bool:
    if operator == "$eq":
        return bool(value == other)
    if operator == "$ne":
        return bool(value != other)
    try:
        return _COMPARE[operator](float(value), float(other))
    except (TypeError, ValueError):  # no numbers: texts, such as dates, have an order too
        return isinstance(value, str) and isinstance(other, str) and _COMPARE[operator](value, other)
