"""AES-256-GCM: the fast cipher. It encrypts and authenticates in one pass.

A token is the time it was made, a random nonce, and the ciphertext with its tag. The time is authenticated
too.
"""

import os
from collections.abc import Sequence
from typing import ClassVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .ciphers import STAMP_BYTES, Unsealed, from_base64, to_base64

_NONCE = 12
_BODY = STAMP_BYTES + _NONCE  # where the ciphertext begins
_LEAST = _BODY + 16  # the tag of an empty text


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
        if decoded is None or min(map(len, decoded), default=_LEAST) < _LEAST:
            return None
        decrypt = self._cipher.decrypt
        stamps = [token[:STAMP_BYTES] for token in decoded]
        try:
            plaintexts = [
                decrypt(token[STAMP_BYTES:_BODY], token[_BODY:], stamp)
                for token, stamp in zip(decoded, stamps, strict=True)
            ]
        except InvalidTag:
            return None
        return Unsealed(stamps, plaintexts)
