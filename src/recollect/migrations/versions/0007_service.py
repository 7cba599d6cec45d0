"""The tables of the service: API keys, the audit log, idempotency keys, and tokens by tenant and day."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_TABLES = ("tenant_tokens", "idempotency_keys", "audit_log", "api_keys")


def upgrade() -> None:
    """Create the missing tables and indexes."""
    _create_keys()
    _create_audit_log()
    _create_idempotency_keys()
    op.create_table(
        "tenant_tokens",
        *_texts("tenant", "day"),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "day"),
        if_not_exists=True,
    )


def _texts(*names: str, required: bool = True) -> list[Any]:
    return [sa.Column(name, sa.Text(), nullable=not required) for name in names]


def _create_keys() -> None:
    op.create_table(
        "api_keys",
        *_texts("key_id", "tenant", "scope", "name", "secret_hash", "created_at"),
        *_texts("expires_at", "revoked_at", "last_used_at", required=False),
        sa.PrimaryKeyConstraint("key_id"),
        if_not_exists=True,
    )
    _create_index("api_keys", "tenant", "created_at")


def _create_audit_log() -> None:
    op.create_table(
        "audit_log",
        *_texts("entry_id", "tenant", "at"),
        *_texts("key_id", required=False),
        *_texts("action"),
        *_texts("target", required=False),
        sa.Column("status", sa.BigInteger(), nullable=False),
        *_texts("request_id", required=False),
        sa.PrimaryKeyConstraint("tenant", "entry_id"),
        if_not_exists=True,
    )


def _create_idempotency_keys() -> None:
    op.create_table(
        "idempotency_keys",
        *_texts("request_key", "tenant", "body_hash", "seed", "owner"),
        sa.Column("leased_until", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        *_texts("made", "user_key", required=False),
        sa.PrimaryKeyConstraint("request_key"),
        if_not_exists=True,
    )
    _create_index("idempotency_keys", "expires_at")
    _create_index("idempotency_keys", "user_key")


def _create_index(table: str, *columns: str) -> None:
    name = f"recollect_{table}_{'_'.join(columns)}"
    op.create_index(name, table, list(columns), if_not_exists=True)


def downgrade() -> None:
    """Drop the tables."""
    for table in _TABLES:
        op.drop_table(table)
