"""All keys of one session: items into envelopes and out of them, many at once.

An envelope is stored in place of an item. It has the form of the Agents SDK's: `__enc__`, `v`, `kid` and
`payload`. Over a session that has branches, it also shows the fields that turns and tools are counted by, and
never any contents.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple, Self

from ...items import Item, decode_item, decode_joined, is_call, is_output
from ..advanced.turns import TOOL_CALLS
from .ciphers import AesGcm, Fernet, ItemCipher, derive_key

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


CIPHERS: dict[str, type[ItemCipher]] = {"fernet": Fernet, "aes-gcm": AesGcm}
SHUT = b""  # the stamp of what no key has opened: before any time
BLOCK = 256  # items: about a millisecond of work, in which nobody else on the interpreter has a turn


class Opened(NamedTuple):
    """What was in stored items, one entry for each of them."""

    stored: list[Item]
    items: list[Item | None]
    """`None` where there is no item to be read."""
    stamps: list[bytes]
    """When it was encrypted; `SHUT` where no key fits, or it is not encrypted at all."""
    plaintexts: list[bytes]
    ciphers: list[ItemCipher | None]
    """By what it was opened."""

    def extend(self, other: Self) -> None:
        """Add what was in further items."""
        self.stored.extend(other.stored)
        self.items.extend(other.items)
        self.stamps.extend(other.stamps)
        self.plaintexts.extend(other.plaintexts)
        self.ciphers.extend(other.ciphers)


def nothing() -> Opened:
    """Of no items."""
    return Opened([], [], [], [], [])


class Vault:
    """The keys of a session. The first encrypts, all decrypt, whichever cipher an envelope is of."""

    def __init__(self, session_id: str, keys: list[bytes], cipher: str, shows_structure: bool) -> None:
        if cipher not in CIPHERS:
            raise ValueError(f"cipher must be one of {', '.join(CIPHERS)}, not {cipher!r}")
        self._session_id = session_id
        self._keys = keys
        self._shows_structure = shows_structure
        self._made: dict[type[ItemCipher], list[ItemCipher]] = {}
        self._kind = CIPHERS[cipher]

    @property
    def current(self) -> ItemCipher:
        """What encrypts."""
        return self._ciphers_of(self._kind)[0]

    def seal(self, plaintexts: Sequence[bytes], stamps: Sequence[bytes]) -> list[Item]:
        """Envelopes for items, which are given as JSON, encrypted at these times."""
        envelopes: list[Item] = []
        for start in range(0, len(plaintexts), BLOCK):
            block = plaintexts[start : start + BLOCK]
            tokens = self.current.seal(block, stamps[start : start + BLOCK])
            envelopes += make_envelopes(self.current, tokens, self.structures_of(block))
        return envelopes

    def structures_of(self, plaintexts: Sequence[bytes]) -> list[Item]:
        """What the envelopes of these items show of them."""
        if not self._shows_structure:
            return [{}] * len(plaintexts)
        return [structure_of(decode_item(text) or {}) for text in plaintexts]

    def open(self, stored: list[Item]) -> Opened:
        """What is in stored items."""
        if 0 < len(stored) <= BLOCK:
            return self._open_block(stored)
        opened = nothing()
        for start in range(0, len(stored), BLOCK):
            opened.extend(self._open_block(stored[start : start + BLOCK]))
        return opened

    def _open_block(self, stored: list[Item]) -> Opened:
        for kind in (self._kind, *CIPHERS.values()):
            tokens = payloads_of(stored, kind.kid)
            if tokens is not None:
                return self._open_alike(kind, stored, tokens)
        opened = nothing()
        for kind_of_run, items in groupby(stored, _kind_of):
            run = list(items)
            if kind_of_run is None:
                opened.extend(_left_shut(run))
            else:
                opened.extend(self._open_alike(kind_of_run, run, [each["payload"] for each in run]))
        return opened

    def _open_alike(self, kind: type[ItemCipher], stored: list[Item], tokens: list[str]) -> Opened:
        """What is in envelopes of one kind. Where no key fits all of them, one will fit most of a half."""
        for cipher in self._ciphers_of(kind):
            unsealed = cipher.unseal(tokens)
            if unsealed is not None:
                return Opened(stored, _decoded(unsealed.plaintexts), *unsealed, [cipher] * len(tokens))
        if len(tokens) == 1:
            return _left_shut(stored)
        middle = len(tokens) // 2
        opened = self._open_alike(kind, stored[:middle], tokens[:middle])
        opened.extend(self._open_alike(kind, stored[middle:], tokens[middle:]))
        return opened

    def _ciphers_of(self, kind: type[ItemCipher]) -> list[ItemCipher]:
        """The cipher of this kind with each of the keys, made when first needed."""
        if kind not in self._made:
            keys = [derive_key(key, self._session_id, kind.purpose) for key in self._keys]
            self._made.setdefault(kind, [kind(key) for key in keys])  # another thread may have been faster
        return self._made[kind]


def _left_shut(stored: list[Item]) -> Opened:
    count = len(stored)
    return Opened(stored, [None] * count, [SHUT] * count, [SHUT] * count, [None] * count)


def _kind_of(stored: Item) -> type[ItemCipher] | None:
    """The cipher of an envelope; the SDK reads all as Fernet's, whatever they say. `None` for plain items."""
    if not is_envelope(stored):
        return None
    return AesGcm if stored["kid"] == AesGcm.kid else Fernet


def _decoded(plaintexts: list[bytes]) -> list[Item | None]:
    """The items, in one go if all is as it should be."""
    items = decode_joined(b",".join(plaintexts))
    if items is not None and len(items) == len(plaintexts) and set(map(type, items)) <= {dict}:
        return items
    return [decode_item(text) for text in plaintexts]
