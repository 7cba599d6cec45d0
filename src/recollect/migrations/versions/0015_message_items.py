"""Which session items are copies of which messages."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_TABLE = "message_items"


def upgrade() -> None:
    """Create the table if it is missing. Items that were mirrored before have no row in it."""
    op.create_table(
        _TABLE,
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("items_table", sa.Text(), nullable=False),
        sa.Column("item_id", sa.BigInteger(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.conversation_id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("conversation_id", "items_table", "item_id"),
        if_not_exists=True,
    )


def downgrade() -> None:
    """Drop it: erasing a message then finds its copies by their words again."""
    op.drop_table(_TABLE)
