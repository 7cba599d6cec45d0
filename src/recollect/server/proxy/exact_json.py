"""Changes of a JSON text that leave all other bytes of its values as they are.

Numbers, escapes and spaces keep their form, since only the changed values are encoded.
"""

from typing import Any

from msgspec import MsgspecError, Raw
from msgspec.json import Decoder, Encoder

_object = Decoder(dict[str, Raw])
_list = Decoder(list[Raw])
_any = Decoder()
_encoder = Encoder()


def decode_object(content: bytes) -> dict[str, Any] | None:
    """The JSON object of a text; `None` if it is none, or is not valid."""
    try:
        decoded = _any.decode(content)
    except (MsgspecError, ValueError, RecursionError):
        return None
    return decoded if isinstance(decoded, dict) else None


def fields_of(content: bytes | Raw) -> dict[str, Raw]:
    """The fields of an object, each as its own text."""
    return _object.decode(content)


def elements_of(content: Raw) -> list[Raw]:
    """The elements of a list, each as its own text."""
    return _list.decode(content)


def encode(value: Any) -> Raw:
    """A value as JSON. Texts of other values can be inside."""
    return Raw(_encoder.encode(value))
