"""Columns for learning from conversations after they go quiet, and indexes that list conversations."""

from typing import TypeAlias

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

Indexes: TypeAlias = dict[str, tuple[tuple[str, ...], ...]]
_COLUMNS = {
    "learn_at": "DOUBLE PRECISION",
    "waiting_from": "BIGINT",
    "settings_version": "BIGINT",
}
_ADDED: Indexes = {
    "conversations": (
        ("memory_id", "created_at", "conversation_id"),
        ("session_id", "created_at", "conversation_id"),
        ("tenant", "created_at", "conversation_id"),
        ("tenant", "updated_at"),
    ),
    "memory_runs": (("tenant", "status", "run_id"),),
}
_REPLACED: Indexes = {
    "conversations": (("memory_id", "created_at"), ("session_id",)),
    "memory_runs": (("tenant", "status", "created_at"),),
}
_PARTIAL = {
    "due": ("learn_at", "learn_at IS NOT NULL"),
    "provided": ("provider_conversation_id", "provider_conversation_id IS NOT NULL"),
}


def upgrade() -> None:
    """Add the columns, which stay empty in existing rows: these have their runs. Replace the indexes."""
    for name, kind in _COLUMNS.items():
        op.execute(f"ALTER TABLE conversations ADD COLUMN IF NOT EXISTS {name} {kind}")
    _replace(_REPLACED, _ADDED)
    for name, (column, condition) in _PARTIAL.items():
        op.execute(
            f"CREATE INDEX IF NOT EXISTS recollect_conversations_{name} ON conversations ({column})"
            f" WHERE {condition}"
        )


def downgrade() -> None:
    """Restore the columns and indexes of the revision before."""
    for name in _PARTIAL:
        op.execute(f"DROP INDEX IF EXISTS recollect_conversations_{name}")
    _replace(_ADDED, _REPLACED)
    for name in _COLUMNS:
        op.execute(f"ALTER TABLE conversations DROP COLUMN IF EXISTS {name}")


def _replace(old: Indexes, new: Indexes) -> None:
    for table, indexes in old.items():
        for columns in indexes:
            op.execute(f"DROP INDEX IF EXISTS recollect_{table}_{'_'.join(columns)}")
    for table, indexes in new.items():
        for columns in indexes:
            op.execute(
                f"CREATE INDEX IF NOT EXISTS recollect_{table}_{'_'.join(columns)} ON {table}"
                f" ({', '.join(columns)})"
            )
