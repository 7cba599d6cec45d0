"""Values of channels as bytes, by the serializer of a checkpointer, and back."""

from collections.abc import Sequence
from struct import pack
from typing import Any, NamedTuple

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

EMPTY = "recollect:empty"
"""A version of a channel that has no value, in databases of before: no row is stored for it now."""
LIST = "recollect:list"
"""A list whose items are in the log of its channel. The bytes are the ranges of their positions."""
SNAPSHOT = "recollect:snapshot"
"""The same for the snapshot of a `DeltaChannel`."""

_LIGHT = (int, float, bool, type(None))  # a list of numbers is one value, not a row for each number
_MESSAGE = 20  # parts of a message
_MSGPACK = "msgpack"
_ARRAY = 0xDD  # the first byte of a msgpack array, before its length in four bytes


class Encoded(NamedTuple):
    """Bytes, and the kind that says how to read them."""

    kind: str
    data: bytes


class ItemList(NamedTuple):
    """A value that is stored item by item."""

    kind: str
    items: list[Any]


def as_item_list(value: object) -> ItemList | None:
    """The items of a value that is stored item by item. `None` for any other value."""
    if isinstance(value, _DeltaSnapshot):
        return ItemList(SNAPSHOT, value.value) if _has_items(value.value) else None
    return ItemList(LIST, value) if isinstance(value, list) and _has_items(value) else None


def _has_items(value: object) -> bool:
    return type(value) is list and bool(value) and not isinstance(value[0], _LIGHT)


def from_item_list(kind: str, items: list[Any]) -> Any:
    """The value that has these items."""
    return _DeltaSnapshot(items) if kind == SNAPSHOT else items


def encode(serde: SerializerProtocol, value: object) -> Encoded:
    """A value as bytes. Raises what the serializer raises."""
    kind, data = serde.dumps_typed(value)
    return Encoded(kind, bytes(data))


def decode(serde: SerializerProtocol, stored: Encoded) -> Any:
    """The value of these bytes. Raises what the serializer raises."""
    return serde.loads_typed((stored.kind, stored.data))


def decode_items(serde: SerializerProtocol, stored: Sequence[Encoded]) -> list[Any]:
    """The items of a list. Those of LangGraph's own serializer are read in one call, which is faster."""
    if type(serde) is JsonPlusSerializer and all(kind == _MSGPACK for kind, _ in stored):
        array = pack(">BI", _ARRAY, len(stored)) + b"".join(data for _, data in stored)
        items: list[Any] = serde.loads_typed((_MSGPACK, array))
        return items
    return [decode(serde, each) for each in stored]


def print_item(serde: SerializerProtocol, item: object) -> Encoded:
    """Bytes that are the same for the same item. Encryption would make them differ each time."""
    return encode(serde.serde if isinstance(serde, EncryptedSerializer) else serde, item)


def print_stored(serde: SerializerProtocol, stored: Encoded) -> Encoded:
    """What `print_item` returns for a stored item."""
    kind, plus, cipher = stored.kind.partition("+")
    if isinstance(serde, EncryptedSerializer) and plus:
        return Encoded(kind, bytes(serde.cipher.decrypt(cipher, stored.data)))
    return stored


def is_heavy(value: object, budget: int) -> bool:
    """Whether encoding a value takes long: it has more than `budget` parts, or characters by the hundred."""
    return _remaining(value, budget) < 0


def _remaining(value: object, budget: int) -> int:
    if isinstance(value, str | bytes | bytearray):
        return budget - 1 - len(value) // 100
    content = getattr(value, "content", None)
    if type(content) is str and not getattr(value, "additional_kwargs", None):  # a message without more
        return budget - _MESSAGE - len(content) // 100
    parts: Any = ()
    if isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        parts = value
    elif hasattr(value, "__dict__"):
        parts = vars(value).values()
    budget -= 1
    if len(parts) > budget:
        return -1
    for part in parts:
        if budget < 0:
            break
        budget = _remaining(part, budget)
    return budget
