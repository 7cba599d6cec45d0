"""Chats of users with long ids: step 0009 did this for sessions alone."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_METADATA = "recollect_sdk_agent_sessions_metadata"
_INDEX = f"{_METADATA}_by_user"


def upgrade() -> None:
    """Put the index in the place of one that refused what was longer than some 2,700 bytes."""
    op.drop_index(_INDEX, _METADATA, if_exists=True)
    op.create_index(_INDEX, _METADATA, ["user_id"], postgresql_using="hash")


def downgrade() -> None:
    """Keep it: versions before this one find by it as well, and theirs may not take what is stored now."""
