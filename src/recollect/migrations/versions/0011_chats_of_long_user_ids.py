"""Long user ids in chats: the same as revision 0009 for the sessions of chats."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_METADATA = "recollect_sdk_agent_sessions_metadata"
_INDEX = f"{_METADATA}_by_user"


def upgrade() -> None:
    """Replace the index, which rejected ids of more than about 2,700 bytes."""
    op.drop_index(_INDEX, _METADATA, if_exists=True)
    op.create_index(_INDEX, _METADATA, ["user_id"], postgresql_using="hash")


def downgrade() -> None:
    """Keep the new index: older versions can use it, and the old one may reject stored ids."""
