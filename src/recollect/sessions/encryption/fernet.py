"""Fernet, for many tokens at once: the cipher of the Agents SDK.

The tokens are those of `cryptography.fernet.Fernet`, which reads them, and whose tokens are read here. A
cipher context for each would cost several times as much as the encryption itself, so all of them are one
stream of AES in CBC mode. Decrypting, a block depends on the one before it, which for the first of a token is
its own initialisation vector; what becomes of the vectors themselves is thrown away. Encrypting, a random
block stands before each text: encrypted, it is the unpredictable vector for what follows.
"""

import os
from collections.abc import Sequence
from typing import ClassVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

from .ciphers import STAMP_BYTES, Unsealed, from_url_safe_base64, to_url_safe_base64

_VERSION = b"\x80"
_BLOCK = 16
_BODY = len(_VERSION) + STAMP_BYTES  # where the vector and the ciphertext begin
_SIGNATURE = 32
_LEAST = _BODY + 2 * _BLOCK + _SIGNATURE
_SPARE = _LEAST % _BLOCK  # what the length of a token leaves when divided by that of a block
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
        bodies = [token[_BODY:-_SIGNATURE] for token in decoded]
        stream = self._cipher.decryptor().update(b"".join(bodies))
        plaintexts, start = [], 0
        for body in bodies:
            end = start + len(body)
            plaintexts.append(stream[start + _BLOCK : end - stream[end - 1]])  # the last byte counts padding
            start = end
        return Unsealed([token[1:_BODY] for token in decoded], plaintexts)

    def _are_genuine(self, tokens: list[bytes]) -> bool:
        """Whether all have the right form and signature. Nothing of a token is used before this is known."""
        signature = self._signature
        try:
            for token in tokens:
                if len(token) < _LEAST or len(token) % _BLOCK != _SPARE or token[0] != _VERSION[0]:
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
