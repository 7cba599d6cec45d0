"""What is left of an erasure: how much went, and a hash by which the person can show that it was theirs."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...errors import InvalidTypeError, InvalidValueError
from ...sql.scripts import Script, Statement
from ..database.schema import KEYS
from ..times import tell_time

_MAKE_KEY = f"INSERT INTO {KEYS.name} (tenant, secret) VALUES (?1, ?2) ON CONFLICT (tenant) DO NOTHING"
_READ_KEY = f"SELECT secret FROM {KEYS.name} WHERE tenant = ?1"


@dataclass(frozen=True)
class Receipt:
    """What was erased, without anything personal."""

    erased_at: datetime
    counts: dict[str, int]
    """How many rows of each kind went."""
    subject: str
    """A hash of the user's id under a key: who has both can tell whose data it was, and nobody else."""

    def to_dict(self) -> dict[str, Any]:
        """The receipt as JSON tells it."""
        return {"erased_at": tell_time(self.erased_at), "counts": self.counts, "subject": self.subject}


def subject_of(user_id: str, key: bytes | str) -> str:
    """The HMAC-SHA256 of a user's id: the same for the same id and key."""
    return hmac.new(check_receipt_key(key), user_id.encode(), hashlib.sha256).hexdigest()


def kept_key(tenant: str) -> Script[str]:
    """The key of a tenant's receipts, which is made when it is first needed."""
    yield Statement(_MAKE_KEY, (tenant, secrets.token_hex(32)))
    rows = yield Statement(_READ_KEY, (tenant,))
    return str(rows[0][0])


def check_receipt_key(key: object) -> bytes:
    """A key as bytes; the error does not show it."""
    if not isinstance(key, bytes | str):
        raise InvalidTypeError(f"key must be bytes or a string, not {type(key).__name__}")
    if not key:
        raise InvalidValueError("key must not be empty")
    return key.encode() if isinstance(key, str) else key
