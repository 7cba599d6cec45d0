"""Tags of conversations and entries, and indexes of rows with tags or metadata."""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_TABLES = ("conversations", "memory_contents")
_INDEXES = {"tagged": "tags IS NOT NULL", "described": "metadata IS NOT NULL"}


def upgrade() -> None:
    """Add the column, which is NULL in existing rows, and the indexes."""
    for table in _TABLES:
        op.execute(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS tags jsonb")
        for name, condition in _INDEXES.items():
            index = f"recollect_{table}_{name}"
            op.execute(f"CREATE INDEX IF NOT EXISTS {index} ON {table} (memory_id) WHERE {condition}")


def downgrade() -> None:
    """Drop the indexes, and the column with its values."""
    for table in _TABLES:
        for name in _INDEXES:
            op.execute(f"DROP INDEX IF EXISTS recollect_{table}_{name}")
        op.execute(f"ALTER TABLE {table} DROP COLUMN IF EXISTS tags")
