"""The ciphers, and the keys they use.

A cipher turns many items into tokens at once, and back. A token contains the time it was made. It is text,
because an item is JSON. There are two ciphers: Fernet, which the Agents SDK uses, and AES-256-GCM, which is
faster because it encrypts and authenticates in one pass.
"""

import base64
import os
from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Protocol

import msgspec
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

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


KEY_BYTES = 32


def master_keys(given: str | Sequence[str]) -> list[bytes]:
    """The keys that were given, one or several, as bytes. An empty one is a `ValueError`."""
    keys = [given] if isinstance(given, str) else given
    if not isinstance(keys, list | tuple):
        raise TypeError(f"encryption_key must be a string or a list of strings, not {type(given).__name__}")
    if not keys:
        raise ValueError("encryption_key is an empty list: at least one key is needed")
    return [_master_key(key) for key in keys]


def _master_key(key: object) -> bytes:
    """The bytes of a key that was made for Fernet, else those of the text, as the Agents SDK takes them."""
    if not isinstance(key, str):
        raise TypeError(f"an encryption key must be a string, not {type(key).__name__}")
    if not key:
        raise ValueError("an encryption key must not be empty")
    try:
        decoded = base64.urlsafe_b64decode(key)
        if len(decoded) == KEY_BYTES:
            return decoded
    except ValueError:
        pass  # not made for Fernet: any text will do
    try:
        return key.encode()
    except UnicodeEncodeError:
        raise ValueError("an encryption key must be valid unicode") from None  # the cause would show it


def derive_key(master: bytes, session_id: str, purpose: bytes) -> bytes:
    """A key for one session and one purpose, from which no other can be found."""
    return HKDF(SHA256(), KEY_BYTES, salt=session_id.encode(), info=purpose).derive(master)


_VERSION = b"\x80"
_BLOCK = 16
_FERNET_BODY = len(_VERSION) + STAMP_BYTES  # where the vector and the ciphertext begin
_SIGNATURE = 32
_FERNET_LEAST = _FERNET_BODY + 2 * _BLOCK + _SIGNATURE
_SPARE = _FERNET_LEAST % _BLOCK  # what the length of a token leaves when divided by that of a block
_PADDINGS = [bytes([_BLOCK - over]) * (_BLOCK - over) for over in range(_BLOCK)]


class Fernet:
    """Tokens of Fernet under one key of 32 bytes."""

    purpose: ClassVar = b"agents.session-store.hkdf.v1"
    version: ClassVar = 1
    kid: ClassVar = "hkdf-v1"

    def __init__(self, key: bytes) -> None:
        self._signature = HMAC(key[:16], SHA256())
        self._cipher = Cipher(algorithms.AES(key[16:]), modes.CBC(bytes(_BLOCK)))

    def seal(self, plaintexts: Sequence[bytes], stamps: Sequence[bytes]) -> list[str]:
        """A token for each text, made at the time that is given with it."""
        padded = [text + _PADDINGS[len(text) % _BLOCK] for text in plaintexts]
        random = os.urandom(_BLOCK * len(padded))
        blocks = [random[start : start + _BLOCK] for start in range(0, len(random), _BLOCK)]
        stream = self._cipher.encryptor().update(
            b"".join([part for pair in zip(blocks, padded, strict=True) for part in pair])
        )
        tokens, start = [], 0
        for text, stamp in zip(padded, stamps, strict=True):
            end = start + _BLOCK + len(text)
            tokens.append(self._signed(_VERSION + stamp + stream[start:end]))
            start = end
        return to_url_safe_base64(tokens)

    def unseal(self, tokens: Sequence[str]) -> Unsealed | None:
        """What is in the tokens; `None` if any of them was not made with this key, or was changed since."""
        decoded = from_url_safe_base64(tokens)
        if decoded is None or not self._are_genuine(decoded):
            return None
        bodies = [token[_FERNET_BODY:-_SIGNATURE] for token in decoded]
        stream = self._cipher.decryptor().update(b"".join(bodies))
        plaintexts, start = [], 0
        for body in bodies:
            end = start + len(body)
            plaintexts.append(stream[start + _BLOCK : end - stream[end - 1]])  # the last byte counts padding
            start = end
        return Unsealed([token[1:_FERNET_BODY] for token in decoded], plaintexts)

    def _are_genuine(self, tokens: list[bytes]) -> bool:
        """Whether all have the right form and signature. Nothing of a token is used before this is known."""
        signature = self._signature
        try:
            for token in tokens:
                if len(token) < _FERNET_LEAST or len(token) % _BLOCK != _SPARE or token[0] != _VERSION[0]:
                    return False
                expected = signature.copy()
                expected.update(token[:-_SIGNATURE])
                expected.verify(token[-_SIGNATURE:])  # in constant time
        except InvalidSignature:
            return False
        return True

    def _signed(self, token: bytes) -> bytes:
        signature = self._signature.copy()
        signature.update(token)
        return token + signature.finalize()


_NONCE = 12
_GCM_BODY = STAMP_BYTES + _NONCE  # where the ciphertext begins
_GCM_LEAST = _GCM_BODY + 16  # the tag of an empty text


class AesGcm:
    """Tokens of AES-256-GCM under one key of 32 bytes."""

    purpose: ClassVar = b"recollect.session-store.hkdf.v2.aes-gcm"
    version: ClassVar = 2
    kid: ClassVar = "hkdf-v2-aes-gcm"

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def seal(self, plaintexts: Sequence[bytes], stamps: Sequence[bytes]) -> list[str]:
        """A token for each text, made at the time that is given with it."""
        encrypt = self._cipher.encrypt
        random = os.urandom(_NONCE * len(plaintexts))
        nonces = [random[start : start + _NONCE] for start in range(0, len(random), _NONCE)]
        return to_base64(
            [
                stamp + nonce + encrypt(nonce, text, stamp)
                for text, stamp, nonce in zip(plaintexts, stamps, nonces, strict=True)
            ]
        )

    def unseal(self, tokens: Sequence[str]) -> Unsealed | None:
        """What is in the tokens; `None` if any of them was not made with this key, or was changed since."""
        decoded = from_base64(tokens)
        if decoded is None or min(map(len, decoded), default=_GCM_LEAST) < _GCM_LEAST:
            return None
        decrypt = self._cipher.decrypt
        stamps = [token[:STAMP_BYTES] for token in decoded]
        try:
            plaintexts = [
                decrypt(token[STAMP_BYTES:_GCM_BODY], token[_GCM_BODY:], stamp)
                for token, stamp in zip(decoded, stamps, strict=True)
            ]
        except InvalidTag:
            return None
        return Unsealed(stamps, plaintexts)
