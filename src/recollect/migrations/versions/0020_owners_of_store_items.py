"""The owner of an item in the store of LangGraph."""

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_TABLE = "langgraph_store_items"
_INDEX = f"recollect_{_TABLE}_by_user"


def upgrade() -> None:
    """Add the column, which is NULL in existing rows, and its index."""
    op.execute(f"ALTER TABLE {_TABLE} ADD COLUMN IF NOT EXISTS user_id text")
    op.execute(f"CREATE INDEX IF NOT EXISTS {_INDEX} ON {_TABLE} (user_id) WHERE user_id IS NOT NULL")


def downgrade() -> None:
    """Drop the column with its values, and the index."""
    op.execute(f"DROP INDEX IF EXISTS {_INDEX}")
    op.execute(f"ALTER TABLE {_TABLE} DROP COLUMN IF EXISTS user_id")
