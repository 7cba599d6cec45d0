"""When entries expire, were last confirmed and were rejected, and indexes for these and for instructions."""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_TABLE = "memory_contents"
_COLUMNS = ("expires_at", "last_confirmed_at", "rejected_at")
_INDEXES = (
    ("expiring", "memory_id, expires_at", "expires_at IS NOT NULL"),
    ("to_purge", "tenant, expires_at", "expires_at IS NOT NULL"),
    ("rejected", "memory_id, position", "rejected_at IS NOT NULL"),
    ("instructions", "memory_id, position", "content_type = 'instruction'"),
)


def upgrade() -> None:
    """Add the columns, which are NULL in existing rows, and the indexes."""
    for column in _COLUMNS:
        op.execute(f"ALTER TABLE {_TABLE} ADD COLUMN IF NOT EXISTS {column} timestamptz")
    for name, columns, condition in _INDEXES:
        op.execute(
            f"CREATE INDEX IF NOT EXISTS recollect_{_TABLE}_{name} ON {_TABLE} ({columns}) WHERE {condition}"
        )


def downgrade() -> None:
    """Drop the columns with their values, and the indexes. Earlier versions do not read instructions."""
    for name, _, _ in reversed(_INDEXES):
        op.execute(f"DROP INDEX IF EXISTS recollect_{_TABLE}_{name}")
    for column in reversed(_COLUMNS):
        op.execute(f"ALTER TABLE {_TABLE} DROP COLUMN IF EXISTS {column}")
