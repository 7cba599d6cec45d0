"""Envelopes: what stands in the place of an item where it is stored.

An envelope has the form of the Agents SDK's: `__enc__`, `v`, `kid` and `payload`. Over a session that has
branches, it also shows what its turns and tools are told by, and never any contents.
"""

from ...items import Item, is_call, is_output
from ..advanced.outline import TOOL_CALLS
from .ciphers import ItemCipher

_OF_EVERY_ITEM = ("type", "role")
_OF_CALLS = ("name", "namespace", "server_label")
_ENVELOPE = {"__enc__", "v", "kid", "payload"}


def make_envelopes(cipher: ItemCipher, tokens: list[str], structures: list[Item]) -> list[Item]:
    """An envelope for each token, with the structure that it shows."""
    return [
        {"__enc__": 1, "v": cipher.version, "kid": cipher.kid, "payload": token, **structure}
        for token, structure in zip(tokens, structures, strict=True)
    ]


def is_envelope(stored: Item) -> bool:
    """Whether this is an envelope, of whatever cipher and key, and not an item that was stored as it is."""
    return stored.get("__enc__") == 1 and stored.keys() >= _ENVELOPE


def payloads_of(stored: list[Item], kid: str) -> list[str] | None:
    """The tokens of envelopes, if all are envelopes of one cipher: as nearly always."""
    try:
        tokens = [
            each["payload"] for each in stored if each["kid"] == kid and each["__enc__"] == 1 and "v" in each
        ]
    except KeyError:
        return None
    return tokens if len(tokens) == len(stored) else None


def structure_of(item: Item) -> Item:
    """What may be seen of an item: its type and role, and of a call or its output the tool."""
    is_of_a_tool = is_call(item) or is_output(item) or item.get("type") in TOOL_CALLS
    fields = (*_OF_EVERY_ITEM, *_OF_CALLS) if is_of_a_tool else _OF_EVERY_ITEM
    return {field: item[field] for field in fields if isinstance(item.get(field), str)}


def structure_shown_by(envelope: Item) -> Item:
    """What an envelope shows beside its token."""
    return {field: value for field, value in envelope.items() if field not in _ENVELOPE}
