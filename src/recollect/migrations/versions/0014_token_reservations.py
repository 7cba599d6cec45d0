"""Token reservations: the estimated tokens of running chat turns, which count against a tenant's budget."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_TABLE = "token_reservations"


def upgrade() -> None:
    """Create the table if it is missing."""
    op.create_table(
        _TABLE,
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("reservation_id", sa.Text(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "reservation_id"),
        if_not_exists=True,
    )


def downgrade() -> None:
    """Drop the table. Reservations last minutes, and the actual figures are in `tenant_tokens`."""
    op.drop_table(_TABLE)
