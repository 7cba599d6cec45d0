"""Names and attachments of messages, metadata of conversations and entries, and an index of users."""

from alembic import op

revision = "0013"
down_revision = "0011"
branch_labels = None
depends_on = None

_COLUMNS = (
    ("conversations", "metadata"),
    ("memory_contents", "metadata"),
    ("conversation_messages", "name"),
    ("conversation_messages", "attachments"),
)
_INDEX = "recollect_memories_tenant_user_key"


def upgrade() -> None:
    """Add the columns, which are empty in the rows that are there."""
    for table, column in _COLUMNS:
        op.execute(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {column} TEXT")
    op.execute(f"CREATE INDEX IF NOT EXISTS {_INDEX} ON memories (tenant, user_key)")


def downgrade() -> None:
    """Drop the columns with what they hold, and the index."""
    op.execute(f"DROP INDEX IF EXISTS {_INDEX}")
    for table, column in reversed(_COLUMNS):
        op.execute(f"ALTER TABLE {table} DROP COLUMN IF EXISTS {column}")
