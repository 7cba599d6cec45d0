"""The event log, and summaries of conversations."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_EVENTS = "conversation_events"
_EVENT_HEADS = "recollect_conversation_events_heads"
_SUMMARIES = "conversation_summaries"
_SUMMARY_HEADS = "recollect_conversation_summaries_heads"
_OPTIONAL_EVENT_COLUMNS = (
    "item_name",
    "role",
    "agent",
    "tool_call_id",
    "tool_name",
    "model",
    "text",
    "reasoning_text",
    "call_arguments",
    "call_output",
    "attachments",
)


def upgrade() -> None:
    """Create the missing tables and indexes."""
    _create_events()
    _create_summaries()


def _create_events() -> None:
    op.create_table(
        _EVENTS,
        sa.Column("conversation_id", sa.String(), primary_key=True),
        sa.Column("sequence_number", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("response_id", sa.Text()),
        sa.Column("item_type", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text()) for name in _OPTIONAL_EVENT_COLUMNS),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.Column("ingested_at", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger()),
        if_not_exists=True,
    )
    op.create_table(
        _EVENT_HEADS,
        sa.Column("conversation_id", sa.String(), primary_key=True),
        sa.Column("next_sequence", sa.BigInteger(), nullable=False),
        sa.Column("tail", sa.Text(), nullable=False),
        sa.Column("stamp", sa.String(), nullable=False),
        if_not_exists=True,
    )


def _create_summaries() -> None:
    op.create_table(
        _SUMMARIES,
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("agent", sa.Text()),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("model", sa.Text()),
        sa.Column("token_length", sa.BigInteger(), nullable=False),
        sa.Column("covered_position", sa.BigInteger()),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.Column("expires_at", sa.String()),
        sa.UniqueConstraint("conversation_id", "version"),
        if_not_exists=True,
    )
    op.create_index(
        "recollect_conversation_summaries_expiring", _SUMMARIES, ["expires_at"], if_not_exists=True
    )
    op.create_table(
        _SUMMARY_HEADS,
        sa.Column("conversation_id", sa.String(), primary_key=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        if_not_exists=True,
    )


def downgrade() -> None:
    """Drop the tables."""
    for table in (_SUMMARY_HEADS, _SUMMARIES, _EVENT_HEADS, _EVENTS):
        op.drop_table(table)
