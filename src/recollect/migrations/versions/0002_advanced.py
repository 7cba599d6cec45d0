"""Notes, branches, structure and usage of sessions. Tables that the SDK created stay."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_COUNTS = ("requests", "input_tokens", "output_tokens", "total_tokens")


def upgrade() -> None:
    """Create the missing tables and indexes."""
    op.create_table(
        "recollect_agent_sessions_notes",
        sa.Column("session_id", sa.String(), _session_key(), primary_key=True),
        sa.Column("note_key", sa.String(), primary_key=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        if_not_exists=True,
    )
    _create_branches()
    _create_usage()


def _create_branches() -> None:
    op.create_table(
        "message_structure",
        sa.Column("id", sa.BigInteger(), primary_key=True, autoincrement=True),
        sa.Column("session_id", sa.String(), _session_key(), nullable=False),
        sa.Column(
            "message_id",
            sa.BigInteger(),
            sa.ForeignKey("agent_messages.id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("branch_id", sa.String(), nullable=False, server_default=sa.text("'main'")),
        sa.Column("message_type", sa.Text(), nullable=False),
        sa.Column("sequence_number", sa.BigInteger(), nullable=False),
        sa.Column("user_turn_number", sa.Integer()),
        sa.Column("branch_turn_number", sa.Integer()),
        sa.Column("tool_name", sa.Text()),
        _time("created_at"),
        if_not_exists=True,
    )
    _index("in_order", ["session_id", "branch_id", "message_id"])
    _index("by_item", ["message_id"])
    is_user = sa.text("message_type = 'user'")
    _index("turns", ["session_id", "branch_id", "branch_turn_number"], postgresql_where=is_user)
    op.create_table(
        "recollect_agent_sessions_branches",
        sa.Column("session_id", sa.String(), _session_key(), primary_key=True),
        sa.Column("branch_id", sa.String(), primary_key=True),
        sa.Column("is_current", sa.Integer(), nullable=False),
        _time("created_at"),
        if_not_exists=True,
    )


def _create_usage() -> None:
    op.create_table(
        "turn_usage",
        sa.Column("id", sa.BigInteger(), primary_key=True, autoincrement=True),
        sa.Column("session_id", sa.String(), _session_key(), nullable=False),
        sa.Column("branch_id", sa.String(), nullable=False, server_default=sa.text("'main'")),
        sa.Column("user_turn_number", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), server_default=sa.text("0")) for name in _COUNTS),
        sa.Column("input_tokens_details", sa.JSON()),
        sa.Column("output_tokens_details", sa.JSON()),
        _time("created_at"),
        sa.UniqueConstraint("session_id", "branch_id", "user_turn_number"),
        if_not_exists=True,
    )
    op.create_table(
        "recollect_agent_sessions_runs",
        sa.Column("session_id", sa.String(), _session_key(), primary_key=True),
        sa.Column("run_id", sa.String(), primary_key=True),
        sa.Column("usage", sa.Text(), nullable=False),
        if_not_exists=True,
    )


def _index(name: str, columns: list[str], **options: Any) -> None:
    op.create_index(
        f"recollect_message_structure_{name}", "message_structure", columns, if_not_exists=True, **options
    )


def _time(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.TIMESTAMP(), nullable=False, server_default=sa.text("CURRENT_TIMESTAMP"))


def _session_key() -> sa.ForeignKey:
    return sa.ForeignKey("agent_sessions.session_id", ondelete="CASCADE")


def downgrade() -> None:
    """Drop our tables. The SDK's tables hold branches and usage, and stay."""
    op.drop_table("recollect_agent_sessions_runs")
    op.drop_table("recollect_agent_sessions_branches")
    op.drop_table("recollect_agent_sessions_notes")
