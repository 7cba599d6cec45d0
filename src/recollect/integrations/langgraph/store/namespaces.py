"""Namespaces as bytes of a column, and which of them a condition matches."""

from collections.abc import Iterable
from typing import TypeAlias
from urllib.parse import unquote

from langgraph.store.base import ListNamespacesOp, MatchCondition

from ....errors import InvalidValueError

Namespace: TypeAlias = tuple[str, ...]

_END = b"\x1f"
_AFTER_END = b"\x20"
_LONGEST = 2000  # bytes: an index limits its rows


def to_bytes(namespace: Namespace) -> bytes:
    """A namespace as a value of a column. Raises `InvalidValueError` if it cannot be one."""
    labels = [label.encode("utf-8", "surrogatepass") for label in namespace]
    if any(_END in label for label in labels):
        raise InvalidValueError("a label of a namespace must not contain the character U+001F")
    stored = b"".join(label + _END for label in labels)
    if len(stored) > _LONGEST:
        raise InvalidValueError(f"a namespace must have at most {_LONGEST} bytes, not {len(stored)}")
    return stored


def from_bytes(stored: bytes) -> Namespace:
    """The namespace of a column."""
    return tuple(label.decode("utf-8", "surrogatepass") for label in stored.split(_END)[:-1])


def range_of(prefix: Namespace) -> tuple[bytes, bytes]:
    """The first bytes of all namespaces that begin with a prefix, and the first ones after them."""
    start = to_bytes(prefix)
    return start, start[:-1] + _AFTER_END if start else b"\xff"


def select(found: Iterable[Namespace], op: ListNamespacesOp) -> list[Namespace]:
    """The namespaces that match, cut at the greatest depth."""
    matching = {each[: op.max_depth] for each in found if _matches_all(each, op)}
    return sorted(matching)[op.offset : op.offset + op.limit]


def _matches_all(namespace: Namespace, op: ListNamespacesOp) -> bool:
    return all(_matches(namespace, condition) for condition in op.match_conditions or ())


def _matches(namespace: Namespace, condition: MatchCondition) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))


def user_of_label(label: str) -> str:
    """The user id of a label."""
    return unquote(label)
