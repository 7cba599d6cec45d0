"""Keys: from what a user gives to what a cipher takes, another for each session and each cipher."""

import base64
from collections.abc import Sequence

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

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
