"""All keys of one session: encrypt many items into envelopes at once, and decrypt them.

An envelope is stored in place of an item. It has the form of the Agents SDK's: `__enc__`, `v`, `kid` and
`payload`. Over a session that has branches, it also shows the fields that turns and tools are counted by, and
never any contents.
"""

import base64
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple, Self

from cryptography import fernet

from ...items import Item, decode_item, decode_joined, is_call, is_output
from ..advanced.turns import TOOL_CALLS
from .ciphers import AesGcm, Fernet, ItemCipher, derive_key

_OF_EVERY_ITEM = ("type", "role")
_OF_CALLS = ("name", "namespace", "server_label")
_ENVELOPE = {"__enc__", "v", "kid", "payload"}


def make_envelopes(cipher: ItemCipher, tokens: list[str], structures: list[Item]) -> list[Item]:
    """Build an envelope for each token, with its visible structure."""
    return [
        {"__enc__": 1, "v": cipher.version, "kid": cipher.kid, "payload": token, **structure}
        for token, structure in zip(tokens, structures, strict=True)
    ]


def is_envelope(stored: Item) -> bool:
    """Whether this is an envelope, of any cipher and key, and not an item that was stored unencrypted."""
    return stored.get("__enc__") == 1 and stored.keys() >= _ENVELOPE


def payloads_of(stored: list[Item], kid: str) -> list[str] | None:
    """Return the tokens if all items are envelopes of this cipher, which is the usual case, else `None`."""
    try:
        tokens = [
            each["payload"] for each in stored if each["kid"] == kid and each["__enc__"] == 1 and "v" in each
        ]
    except KeyError:
        return None
    return tokens if len(tokens) == len(stored) else None


def structure_of(item: Item) -> Item:
    """Return the fields that an envelope may show: type and role, and the tool of a call or output."""
    is_of_a_tool = is_call(item) or is_output(item) or item.get("type") in TOOL_CALLS
    fields = (*_OF_EVERY_ITEM, *_OF_CALLS) if is_of_a_tool else _OF_EVERY_ITEM
    return {field: item[field] for field in fields if isinstance(item.get(field), str)}


def visible_structure_of(envelope: Item) -> Item:
    """Return the fields that an envelope shows beside its token."""
    return {field: value for field, value in envelope.items() if field not in _ENVELOPE}


CIPHERS: dict[str, type[ItemCipher]] = {"fernet": Fernet, "aes-gcm": AesGcm}
UNDECRYPTED = b""  # the stamp of an item that no key decrypts: lower than any time
BLOCK = 256  # items: about a millisecond of work, during which no other thread runs


class DecryptedItems(NamedTuple):
    """The contents of stored items, one entry for each item."""

    stored: list[Item]
    items: list[Item | None]
    """The decrypted items, `None` if an item cannot be decrypted."""
    stamps: list[bytes]
    """The time of encryption, `UNDECRYPTED` if no key fits or the item is not encrypted."""
    plaintexts: list[bytes]
    ciphers: list[ItemCipher | None]
    """The cipher that decrypted the item."""

    def extend(self, other: Self) -> None:
        """Append the contents of further items."""
        self.stored.extend(other.stored)
        self.items.extend(other.items)
        self.stamps.extend(other.stamps)
        self.plaintexts.extend(other.plaintexts)
        self.ciphers.extend(other.ciphers)


def no_items() -> DecryptedItems:
    """Return an empty result."""
    return DecryptedItems([], [], [], [], [])


class Vault:
    """The keys of a session. The first key encrypts. All keys decrypt, with either cipher."""

    def __init__(self, session_id: str, keys: list[bytes], cipher: str, shows_structure: bool) -> None:
        if cipher not in CIPHERS:
            raise ValueError(f"cipher must be one of {', '.join(CIPHERS)}, not {cipher!r}")
        self._session_id = session_id
        self._keys = keys
        self._shows_structure = shows_structure
        self._ciphers: dict[type[ItemCipher], list[ItemCipher]] = {}
        self._kind = CIPHERS[cipher]

    @property
    def current(self) -> ItemCipher:
        """The cipher that encrypts: the chosen one, with the first key."""
        return self._ciphers_of(self._kind)[0]

    @property
    def fernet(self) -> fernet.Fernet:
        """The cipher of the SDK with the first key, as the library has it, for one token at a time."""
        key = derive_key(self._keys[0], self._session_id, Fernet.purpose)
        return fernet.Fernet(base64.urlsafe_b64encode(key))

    def encrypt(self, plaintexts: Sequence[bytes], stamps: Sequence[bytes]) -> list[Item]:
        """Encrypt items, given as JSON, into envelopes with these time stamps."""
        envelopes: list[Item] = []
        for start in range(0, len(plaintexts), BLOCK):
            block = plaintexts[start : start + BLOCK]
            tokens = self.current.encrypt(block, stamps[start : start + BLOCK])
            envelopes += make_envelopes(self.current, tokens, self.structures_of(block))
        return envelopes

    def structures_of(self, plaintexts: Sequence[bytes]) -> list[Item]:
        """Return the visible structure of these items, empty if it is hidden."""
        if not self._shows_structure:
            return [{}] * len(plaintexts)
        return [structure_of(decode_item(text) or {}) for text in plaintexts]

    def decrypt(self, stored: list[Item]) -> DecryptedItems:
        """Decrypt stored items."""
        if 0 < len(stored) <= BLOCK:
            return self._decrypt_block(stored)
        decrypted = no_items()
        for start in range(0, len(stored), BLOCK):
            decrypted.extend(self._decrypt_block(stored[start : start + BLOCK]))
        return decrypted

    def _decrypt_block(self, stored: list[Item]) -> DecryptedItems:
        for kind in (self._kind, *CIPHERS.values()):
            tokens = payloads_of(stored, kind.kid)
            if tokens is not None:
                return self._decrypt_same_cipher(kind, stored, tokens)
        decrypted = no_items()
        for kind_of_run, items in groupby(stored, _kind_of):
            run = list(items)
            if kind_of_run is None:
                decrypted.extend(_undecrypted(run))
            else:
                decrypted.extend(
                    self._decrypt_same_cipher(kind_of_run, run, [each["payload"] for each in run])
                )
        return decrypted

    def _decrypt_same_cipher(
        self, kind: type[ItemCipher], stored: list[Item], tokens: list[str]
    ) -> DecryptedItems:
        """Decrypt envelopes of one cipher. If no key fits all of them, each half is tried on its own."""
        for cipher in self._ciphers_of(kind):
            contents = cipher.decrypt(tokens)
            if contents is not None:
                return DecryptedItems(
                    stored, _decode_all(contents.plaintexts), *contents, [cipher] * len(tokens)
                )
        if len(tokens) == 1:
            return _undecrypted(stored)
        middle = len(tokens) // 2
        decrypted = self._decrypt_same_cipher(kind, stored[:middle], tokens[:middle])
        decrypted.extend(self._decrypt_same_cipher(kind, stored[middle:], tokens[middle:]))
        return decrypted

    def _ciphers_of(self, kind: type[ItemCipher]) -> list[ItemCipher]:
        """Return the cipher with each of the keys. Created on first use."""
        if kind not in self._ciphers:
            keys = [derive_key(key, self._session_id, kind.purpose) for key in self._keys]
            self._ciphers.setdefault(
                kind, [kind(key) for key in keys]
            )  # another thread may have set it first
        return self._ciphers[kind]


def _undecrypted(stored: list[Item]) -> DecryptedItems:
    count = len(stored)
    return DecryptedItems(
        stored, [None] * count, [UNDECRYPTED] * count, [UNDECRYPTED] * count, [None] * count
    )


def _kind_of(stored: Item) -> type[ItemCipher] | None:
    """Return the cipher of an envelope, or `None` for a plain item.

    Like the SDK, unknown key ids are Fernet.
    """
    if not is_envelope(stored):
        return None
    return AesGcm if stored["kid"] == AesGcm.kid else Fernet


def _decode_all(plaintexts: list[bytes]) -> list[Item | None]:
    """Decode the items, all at once if every text is valid."""
    items = decode_joined(b",".join(plaintexts))
    if items is not None and len(items) == len(plaintexts) and set(map(type, items)) <= {dict}:
        return items
    return [decode_item(text) for text in plaintexts]
