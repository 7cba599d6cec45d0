"""Tags of conversations and entries."""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_TABLES = ("conversations", "memory_contents")


def upgrade() -> None:
    """Add the column, which is NULL in existing rows."""
    for table in _TABLES:
        op.execute(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS tags jsonb")


def downgrade() -> None:
    """Drop the column with its values."""
    for table in _TABLES:
        op.execute(f"ALTER TABLE {table} DROP COLUMN IF EXISTS tags")
