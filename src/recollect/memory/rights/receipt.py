"""The receipt of an erasure: counts, and a hash that proves whose data it was."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ...errors import InvalidTypeError, InvalidValueError
from ...sql.scripts import Script, Statement
from ..database.schema import KEYS
from ..times import format_time

_MAKE_KEY = f"INSERT INTO {KEYS.name} (tenant, secret) VALUES (?1, ?2) ON CONFLICT (tenant) DO NOTHING"
_READ_KEY = f"SELECT secret FROM {KEYS.name} WHERE tenant = ?1"


@dataclass(frozen=True)
class Receipt:
    """The proof of an erasure. It holds nothing personal."""

    erased_at: datetime
    counts: dict[str, int]
    """The number of deleted rows, by kind."""
    subject: str
    """The HMAC of the user's id: only with the id and the key can it be computed again."""
    remains: dict[str, str] = field(default_factory=dict)
    """Where the erased data may still be, and until when: such as `backups`, or `database` on PostgreSQL."""

    def to_dict(self) -> dict[str, Any]:
        """The receipt as a JSON object."""
        return {
            "erased_at": format_time(self.erased_at),
            "counts": self.counts,
            "subject": self.subject,
            "remains": self.remains,
        }


def subject_of(user_id: str, key: bytes | str) -> str:
    """The HMAC-SHA256 of a user's id: the same for the same id and key."""
    return hmac.new(check_receipt_key(key), user_id.encode(), hashlib.sha256).hexdigest()


def receipt_key(tenant: str) -> Script[str]:
    """The key of a tenant's receipts. It is created when it is first needed."""
    yield Statement(_MAKE_KEY, (tenant, secrets.token_hex(32)))
    rows = yield Statement(_READ_KEY, (tenant,))
    return str(rows[0][0])


def check_receipt_key(key: object) -> bytes:
    """A key as bytes. An error message does not show the key."""
    if not isinstance(key, bytes | str):
        raise InvalidTypeError(f"key must be bytes or a string, not {type(key).__name__}")
    if not key:
        raise InvalidValueError("key must not be empty")
    return key.encode() if isinstance(key, str) else key
