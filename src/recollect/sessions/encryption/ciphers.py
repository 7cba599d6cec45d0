"""What a cipher does: tokens for many items at once, and what was in them.

A token says when it was made. It is text, because an item is JSON.
"""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Protocol

import msgspec

STAMP_BYTES = 8

_to_json = msgspec.json.Encoder().encode
_strings_from_json = msgspec.json.Decoder(list[str]).decode
_bytes_from_json = msgspec.json.Decoder(list[bytes]).decode
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_FROM_URL_SAFE = bytes.maketrans(b"-_", b"+/")


class Unsealed(NamedTuple):
    """What was in tokens, and when they were made: as bytes, which compare as the times do."""

    stamps: list[bytes]
    plaintexts: list[bytes]


class ItemCipher(Protocol):
    """Encrypts and authenticates, with one key."""

    purpose: ClassVar[bytes]
    """What its keys are derived for: two ciphers never have the same."""
    version: ClassVar[int]
    kid: ClassVar[str]
    """What envelopes of the cipher are known by."""

    def __init__(self, key: bytes) -> None: ...

    def seal(self, plaintexts: Sequence[bytes], stamps: Sequence[bytes]) -> list[str]:
        """A token for each text, made at the time that is given with it."""
        ...

    def unseal(self, tokens: Sequence[str]) -> Unsealed | None:
        """What is in the tokens; `None` if any of them was not made with this key, or was changed since."""
        ...


def stamp_of(seconds: float) -> bytes:
    """A time, in seconds since 1970, as tokens hold it."""
    return int(seconds).to_bytes(STAMP_BYTES, "big")


# --- base64: the fast codec's own decoder takes a fifth of the time that the standard library's does -----


def to_base64(tokens: Sequence[bytes]) -> list[str]:
    """Tokens as text."""
    texts: list[str] = msgspec.to_builtins(tokens)
    return texts


def from_base64(texts: Sequence[str]) -> list[bytes] | None:
    """Tokens from text; `None` if any of it is not base64."""
    try:
        return msgspec.convert(texts, list[bytes])
    except (msgspec.ValidationError, UnicodeError):
        return None


def to_url_safe_base64(tokens: Sequence[bytes]) -> list[str]:
    """Tokens as text, in the alphabet that Fernet uses."""
    return _strings_from_json(_to_json(tokens).translate(_URL_SAFE))


def from_url_safe_base64(texts: Sequence[str]) -> list[bytes] | None:
    """Tokens from text in the alphabet that Fernet uses; `None` if any of it is something else."""
    try:
        joined = '["' + '","'.join(texts) + '"]'
        tokens = _bytes_from_json(joined.encode().translate(_FROM_URL_SAFE))
    except (msgspec.MsgspecError, UnicodeError, TypeError):
        return None
    # A text with a quotation mark in it would have become two.
    return tokens if len(tokens) == len(texts) else None
