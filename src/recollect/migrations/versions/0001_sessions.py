"""Sessions: the tables of the Agents SDK, and ours beside them. Tables that the SDK created stay."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the missing tables and indexes."""
    op.create_table(
        "agent_sessions",
        sa.Column("session_id", sa.String(), primary_key=True),
        _time("created_at"),
        _time("updated_at"),
        if_not_exists=True,
    )
    op.create_table(
        "agent_messages",
        sa.Column("id", sa.BigInteger(), primary_key=True, autoincrement=True),
        sa.Column("session_id", sa.String(), _session_key(), nullable=False),
        sa.Column("message_data", sa.Text(), nullable=False),
        _time("created_at"),
        if_not_exists=True,
    )
    op.create_index(
        "recollect_agent_messages_by_session", "agent_messages", ["session_id", "id"], if_not_exists=True
    )
    _create_own_tables()


def _create_own_tables() -> None:
    op.create_table(
        "recollect_agent_sessions_metadata",
        sa.Column("session_id", sa.String(), _session_key(), primary_key=True),
        sa.Column("user_id", sa.String()),
        sa.Column("agent_id", sa.String()),
        sa.Column("title", sa.Text()),
        sa.Column("data", sa.Text(), nullable=False),
        if_not_exists=True,
    )
    op.create_index(
        "recollect_agent_sessions_metadata_by_user",
        "recollect_agent_sessions_metadata",
        ["user_id", "agent_id"],
        if_not_exists=True,
    )
    op.create_table(
        "recollect_agent_messages_batches",
        sa.Column("session_id", sa.String(), _session_key(), primary_key=True),
        sa.Column("batch_id", sa.String(), primary_key=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "recollect_agent_sessions_leases",
        sa.Column("session_id", sa.String(), primary_key=True),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        if_not_exists=True,
    )


def _time(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.TIMESTAMP(), nullable=False, server_default=sa.text("CURRENT_TIMESTAMP"))


def _session_key() -> sa.ForeignKey:
    return sa.ForeignKey("agent_sessions.session_id", ondelete="CASCADE")


def downgrade() -> None:
    """Drop our tables. The SDK's tables hold the items, and stay."""
    op.drop_table("recollect_agent_sessions_leases")
    op.drop_table("recollect_agent_messages_batches")
    op.drop_table("recollect_agent_sessions_metadata")
    op.drop_index("recollect_agent_messages_by_session", "agent_messages")
