"""Names and attachments of messages, metadata of conversations and entries, and an index of users."""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_COLUMNS = (
    ("conversations", "metadata", "jsonb"),
    ("memory_contents", "metadata", "jsonb"),
    ("conversation_messages", "name", "text"),
    ("conversation_messages", "attachments", "jsonb"),
)
_INDEX = "recollect_memories_tenant_user_key"


def upgrade() -> None:
    """Add the columns, which are NULL in existing rows, and the index."""
    for table, column, kind in _COLUMNS:
        op.execute(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {column} {kind}")
    op.execute(f"CREATE INDEX IF NOT EXISTS {_INDEX} ON memories (tenant, user_key)")


def downgrade() -> None:
    """Drop the columns with their values, and the index."""
    op.execute(f"DROP INDEX IF EXISTS {_INDEX}")
    for table, column, _ in reversed(_COLUMNS):
        op.execute(f"ALTER TABLE {table} DROP COLUMN IF EXISTS {column}")
