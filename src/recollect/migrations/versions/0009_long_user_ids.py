"""Long user ids: an index by hash finds the sessions of a user, and takes ids of any length."""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_METADATA = "recollect_agent_sessions_metadata"
_INDEX = f"{_METADATA}_by_user"


def upgrade() -> None:
    """Replace the index, which rejected ids of more than about 2,700 bytes."""
    op.drop_index(_INDEX, _METADATA, if_exists=True)
    op.create_index(_INDEX, _METADATA, ["user_id"], postgresql_using="hash")


def downgrade() -> None:
    """Keep the new index: older versions can use it, and the old one may reject stored ids."""
