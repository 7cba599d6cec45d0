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


class Decrypted(NamedTuple):
    """The plaintexts of tokens, and the times they were made.

    Stamps are bytes that compare like the times.
    """

    stamps: list[bytes]
    plaintexts: list[bytes]


class ItemCipher(Protocol):
    """Encrypts and authenticates with one key."""

    purpose: ClassVar[bytes]
    """The purpose that its keys are derived for.

    No two ciphers share a purpose, so they never share a key.
    """
    version: ClassVar[int]
    kid: ClassVar[str]
    """The key id in the envelopes of this cipher. It identifies the cipher."""

    def __init__(self, key: bytes) -> None: ...

    def encrypt(self, plaintexts: Sequence[bytes], stamps: Sequence[bytes]) -> list[str]:
        """Encrypt each text into a token with the given time stamp."""
        ...

    def decrypt(self, tokens: Sequence[str]) -> Decrypted | None:
        """Decrypt all tokens. Return `None` if any token has another key or was modified."""
        ...


def stamp_of(seconds: float) -> bytes:
    """Convert a time in seconds since 1970 into the stamp of a token."""
    return int(seconds).to_bytes(STAMP_BYTES, "big")


# --- base64: msgspec's decoder takes a fifth of the time of the standard library's -----


def to_base64(tokens: Sequence[bytes]) -> list[str]:
    """Encode tokens as text."""
    texts: list[str] = msgspec.to_builtins(tokens)
    return texts


def from_base64(texts: Sequence[str]) -> list[bytes] | None:
    """Decode tokens from text. Return `None` if any text is not base64."""
    try:
        return msgspec.convert(texts, list[bytes])
    except (msgspec.ValidationError, UnicodeError):
        return None


def to_url_safe_base64(tokens: Sequence[bytes]) -> list[str]:
    """Encode tokens as text in the URL-safe alphabet of Fernet."""
    return _strings_from_json(_to_json(tokens).translate(_URL_SAFE))


def from_url_safe_base64(texts: Sequence[str]) -> list[bytes] | None:
    """Decode tokens from the URL-safe alphabet of Fernet. Return `None` if any text is not base64."""
    try:
        joined = '["' + '","'.join(texts) + '"]'
        tokens = _bytes_from_json(joined.encode().translate(_FROM_URL_SAFE))
    except (msgspec.MsgspecError, UnicodeError, TypeError):
        return None
    # A text that contains a quotation mark is decoded as two tokens.
    return tokens if len(tokens) == len(texts) else None


# --- keys ---

KEY_BYTES = 32


def master_keys(given: str | Sequence[str]) -> list[bytes]:
    """Convert one or several keys into bytes. Raise `ValueError` for an empty key."""
    keys = [given] if isinstance(given, str) else given
    if not isinstance(keys, list | tuple):
        raise TypeError(f"encryption_key must be a string or a list of strings, not {type(given).__name__}")
    if not keys:
        raise ValueError("encryption_key is an empty list: give at least one key")
    return [_master_key(key) for key in keys]


def _master_key(key: object) -> bytes:
    """Decode a Fernet key. Any other text is encoded as UTF-8, as the Agents SDK does."""
    if not isinstance(key, str):
        raise TypeError(f"an encryption key must be a string, not {type(key).__name__}")
    if not key:
        raise ValueError("an encryption key must not be empty")
    try:
        decoded = base64.urlsafe_b64decode(key)
        if len(decoded) == KEY_BYTES:
            return decoded
    except ValueError:
        pass  # not a Fernet key: any other text is a key too
    try:
        return key.encode()
    except UnicodeEncodeError:
        # Without its cause, which would contain the key.
        raise ValueError("an encryption key must be valid unicode") from None


def derive_key(master: bytes, session_id: str, purpose: bytes) -> bytes:
    """Derive the key for one session and one purpose. No other key can be computed from it."""
    return HKDF(SHA256(), KEY_BYTES, salt=session_id.encode(), info=purpose).derive(master)


# --- Fernet, for many tokens at once ---
#
# The tokens are those of `cryptography.fernet.Fernet`: it reads ours, and we read its tokens. A cipher
# context for each token would cost several times as much as the encryption itself, so all tokens are one
# stream of AES in CBC mode. In decryption, a block depends on the block before it, which for the first block
# of a token is its initialization vector; the output for the vectors themselves is discarded. In encryption,
# a random block precedes each text: encrypted, it is the unpredictable vector of the text.

_VERSION = b"\x80"
_BLOCK = 16
_FERNET_BODY = len(_VERSION) + STAMP_BYTES  # offset of the vector and the ciphertext
_SIGNATURE = 32
_FERNET_LEAST = _FERNET_BODY + 2 * _BLOCK + _SIGNATURE
_SPARE = _FERNET_LEAST % _BLOCK  # the remainder of a token length divided by the block length
_PADDINGS = [bytes([_BLOCK - over]) * (_BLOCK - over) for over in range(_BLOCK)]


class Fernet:
    """Fernet with one key of 32 bytes: the cipher of the Agents SDK."""

    purpose: ClassVar = b"agents.session-store.hkdf.v1"
    version: ClassVar = 1
    kid: ClassVar = "hkdf-v1"

    def __init__(self, key: bytes) -> None:
        self._signature = HMAC(key[:16], SHA256())
        self._cipher = Cipher(algorithms.AES(key[16:]), modes.CBC(bytes(_BLOCK)))

    def encrypt(self, plaintexts: Sequence[bytes], stamps: Sequence[bytes]) -> list[str]:
        """Encrypt each text into a token with the given time stamp."""
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

    def decrypt(self, tokens: Sequence[str]) -> Decrypted | None:
        """Decrypt all tokens. Return `None` if any token has another key or was modified."""
        decoded = from_url_safe_base64(tokens)
        if decoded is None or not self._are_genuine(decoded):
            return None
        bodies = [token[_FERNET_BODY:-_SIGNATURE] for token in decoded]
        stream = self._cipher.decryptor().update(b"".join(bodies))
        plaintexts, start = [], 0
        for body in bodies:
            end = start + len(body)
            plaintexts.append(
                stream[start + _BLOCK : end - stream[end - 1]]
            )  # the last byte is the length of the padding
            start = end
        return Decrypted([token[1:_FERNET_BODY] for token in decoded], plaintexts)

    def _are_genuine(self, tokens: list[bytes]) -> bool:
        """Whether all tokens have the right form and signature.

        No part of a token is used before this check.
        """
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


# --- AES-256-GCM ---
#
# A token is the time it was made, a random nonce, and the ciphertext with its tag. The time is authenticated
# too.

_NONCE = 12
_GCM_BODY = STAMP_BYTES + _NONCE  # offset of the ciphertext
_GCM_LEAST = _GCM_BODY + 16  # with the tag of an empty text


class AesGcm:
    """AES-256-GCM with one key of 32 bytes: the fast cipher."""

    purpose: ClassVar = b"recollect.session-store.hkdf.v2.aes-gcm"
    version: ClassVar = 2
    kid: ClassVar = "hkdf-v2-aes-gcm"

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def encrypt(self, plaintexts: Sequence[bytes], stamps: Sequence[bytes]) -> list[str]:
        """Encrypt each text into a token with the given time stamp."""
        encrypt = self._cipher.encrypt
        random = os.urandom(_NONCE * len(plaintexts))
        nonces = [random[start : start + _NONCE] for start in range(0, len(random), _NONCE)]
        return to_base64(
            [
                stamp + nonce + encrypt(nonce, text, stamp)
                for text, stamp, nonce in zip(plaintexts, stamps, nonces, strict=True)
            ]
        )

    def decrypt(self, tokens: Sequence[str]) -> Decrypted | None:
        """Decrypt all tokens. Return `None` if any token has another key or was modified."""
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
        return Decrypted(stamps, plaintexts)
