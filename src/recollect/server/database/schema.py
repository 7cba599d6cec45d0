"""The service's own tables. None of them contains contents or a usable secret.

`api_keys` has the hashes of keys, also of revoked ones. `audit_log` records requests by ids that the service
made. `idempotency_keys` has the results of requests as ids, until they expire. `tenant_tokens` counts the
model tokens of a tenant by day. `token_reservations` has the estimated tokens of chat turns in flight, until
they end or their lease expires.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from ...sql.description import Column, Table, create_in_sqlite, describe, put_key_first
from ...sql.schema import Schema, Step
from ...sql.scripts import Script


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

_FIRST_TABLES = (API_KEYS, AUDIT_LOG, IDEMPOTENCY_KEYS, TENANT_TOKENS)
TABLES = (*_FIRST_TABLES, TOKEN_RESERVATIONS)


def create_tables() -> Script[None]:
    """Create the missing tables of the first version."""
    yield from create_in_sqlite(_FIRST_TABLES)


def create_reservations() -> Script[None]:
    """Create the table of reserved tokens."""
    yield from create_in_sqlite([TOKEN_RESERVATIONS])


def put_key_of_audit_log_first() -> Script[None]:
    """Give the audit log of an older file the order of columns that SQLite's `integrity_check` expects."""
    yield from put_key_first(AUDIT_LOG)


@dataclass(frozen=True)
class ServiceSchema(Schema):
    """The schema of the service's own tables."""

    @property
    def scope(self) -> str:
        """The name of the schema, which exists once per database."""
        return "service"

    def steps(self) -> Sequence[Step]:
        """The migrations of a SQLite file, in order."""
        steps = (create_tables, put_key_of_audit_log_first, create_reservations)
        return [Step(step.__name__, step) for step in steps]

    def columns(self) -> Mapping[str, Set[str]]:
        """All columns by table: no other package creates these tables."""
        return {table.name: set(table.column_names) for table in TABLES}

    def describe(self) -> Any:
        """The tables as SQLAlchemy's `MetaData`."""
        return describe(TABLES)
