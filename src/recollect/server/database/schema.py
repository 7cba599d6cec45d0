"""The service's own tables. None of them contains contents or a usable secret.

`api_keys` has the hashes of keys, also of revoked ones. `audit_log` records requests by ids that the service
made. `idempotency_keys` has the results of requests as ids, until they expire. `tenant_tokens` counts the
model tokens of a tenant by day. `token_reservations` has the estimated tokens of chat turns in flight, until
they end or their lease expires.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ...sql.description import Column, Table
from ...sql.schema import Schema


def _texts(*names: str, required: bool = True) -> tuple[Column, ...]:
    return tuple(Column(name, required=required) for name in names)


def _times(*names: str, required: bool = True) -> tuple[Column, ...]:
    return tuple(Column(name, "time", required) for name in names)


API_KEYS = Table(
    "api_keys",
    (
        *_texts("key_id", "tenant", "scope", "name", "secret_hash"),
        *_times("created_at"),
        *_times("expires_at", "revoked_at", "last_used_at", required=False),
    ),
    key=("key_id",),
    indexes=(("tenant", "created_at"),),
)

AUDIT_LOG = Table(
    "audit_log",
    (
        *_texts("entry_id", "tenant"),
        *_times("at"),
        *_texts("key_id", required=False),
        Column("action"),
        *_texts("target", required=False),
        Column("status", "integer"),
        *_texts("request_id", required=False),
    ),
    key=("tenant", "entry_id"),
    without_rowid=True,
)

IDEMPOTENCY_KEYS = Table(
    "idempotency_keys",
    (
        *_texts("request_key", "tenant", "body_hash", "seed", "owner"),
        Column("leased_until", "real"),
        Column("expires_at", "real"),
        Column("made", "json", required=False),
        *_texts("user_key", required=False),
    ),
    key=("request_key",),
    indexes=(("expires_at",), ("user_key",)),
)

TENANT_TOKENS = Table(
    "tenant_tokens", (*_texts("tenant", "day"), Column("tokens", "integer")), key=("tenant", "day")
)

TOKEN_RESERVATIONS = Table(
    "token_reservations",
    (
        *_texts("tenant", "reservation_id"),
        Column("tokens", "integer"),
        Column("expires_at", "real"),
    ),
    key=("tenant", "reservation_id"),
    without_rowid=True,
)

TABLES = (API_KEYS, AUDIT_LOG, IDEMPOTENCY_KEYS, TENANT_TOKENS, TOKEN_RESERVATIONS)


@dataclass(frozen=True)
class ServiceSchema(Schema):
    """The schema of the service's own tables."""

    @property
    def scope(self) -> str:
        """The name of the schema, which exists once per database."""
        return "service"

    def described(self) -> Sequence[Table]:
        """The tables."""
        return TABLES
