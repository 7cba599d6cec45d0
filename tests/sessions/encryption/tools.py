"""What these tests share: envelopes of any age, made by the library itself, and a look at what is stored."""

import base64
import time
from typing import Any

import msgspec
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from recollect.sessions.encryption import EncryptedSession

Item = dict[str, Any]
KEY = "a secret that nobody guesses"
CIPHERS = ["fernet", "aes-gcm"]


def fernet(key: str = KEY, session_id: str = "s") -> Fernet:
    """The Fernet that the SDK derives, for a key that is any text."""
    hkdf = HKDF(SHA256(), 32, salt=session_id.encode(), info=b"agents.session-store.hkdf.v1")
    return Fernet(base64.urlsafe_b64encode(hkdf.derive(key.encode())))


def envelope(item: Any, age: float = 0, key: str = KEY) -> Item:
    """An item in an envelope as the SDK makes it, encrypted so many seconds ago."""
    token = fernet(key).encrypt_at_time(msgspec.json.encode(item), int(time.time() - age))
    return {"__enc__": 1, "v": 1, "kid": "hkdf-v1", "payload": token.decode()}


def age_of(stored: Item, key: str = KEY) -> int:
    """How many seconds ago an envelope was made."""
    return int(time.time()) - fernet(key).extract_timestamp(stored["payload"])


def truncated(stored: Item) -> Item:
    """An envelope whose token lost its end."""
    return {**stored, "payload": stored["payload"][:-8]}


def encrypted(inner: Any, key: Any = KEY, ttl: float | None = None, **options: Any) -> EncryptedSession:
    """A session around another, which never forgets unless it is told to."""
    return EncryptedSession("s", inner, key, ttl, **options)


async def all_stored(session: EncryptedSession) -> list[Item]:
    """The envelopes, as the wrapped session gives them."""
    return list(await session.underlying_session.get_items())
