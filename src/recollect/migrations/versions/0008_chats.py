"""Chats: the advanced sessions of the provider, and the turns."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_SESSIONS = "sdk_agent_sessions"
_MESSAGES = "sdk_agent_session_messages"
_STRUCTURE = f"recollect_{_MESSAGES}_structure"
_COUNTS = ("requests", "input_tokens", "output_tokens", "total_tokens")
_TABLES = (
    "chat_turns",
    f"recollect_{_SESSIONS}_runs",
    f"recollect_{_SESSIONS}_usage",
    f"recollect_{_SESSIONS}_branches",
    _STRUCTURE,
    f"recollect_{_SESSIONS}_notes",
    f"recollect_{_SESSIONS}_leases",
    f"recollect_{_MESSAGES}_batches",
    f"recollect_{_SESSIONS}_metadata",
    _MESSAGES,
    _SESSIONS,
)


def upgrade() -> None:
    """Create the missing tables and indexes."""
    _create_history()
    _create_own_tables()
    _create_branches()
    _create_usage()
    _create_turns()


def _create(name: str, *parts: Any) -> None:
    op.create_table(name, *parts, if_not_exists=True)


def _create_history() -> None:
    _create(
        _SESSIONS,
        sa.Column("session_id", sa.String(), primary_key=True),
        _time("created_at"),
        _time("updated_at"),
    )
    _create(
        _MESSAGES,
        sa.Column("id", sa.BigInteger(), primary_key=True, autoincrement=True),
        _session_id(nullable=False),
        sa.Column("message_data", sa.Text(), nullable=False),
        _time("created_at"),
    )
    _index(f"recollect_{_MESSAGES}_by_session", _MESSAGES, ["session_id", "id"])


def _create_own_tables() -> None:
    metadata = f"recollect_{_SESSIONS}_metadata"
    _create(
        metadata,
        _session_id(primary_key=True),
        sa.Column("user_id", sa.String()),
        sa.Column("agent_id", sa.String()),
        sa.Column("title", sa.Text()),
        sa.Column("data", sa.Text(), nullable=False),
    )
    _index(f"{metadata}_by_user", metadata, ["user_id"], postgresql_using="hash")
    _create(
        f"recollect_{_MESSAGES}_batches",
        _session_id(primary_key=True),
        sa.Column("batch_id", sa.String(), primary_key=True),
        sa.Column("created_at", sa.Double(), nullable=False),
    )
    _create(
        f"recollect_{_SESSIONS}_leases",
        sa.Column("session_id", sa.String(), primary_key=True),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
    )
    _create(
        f"recollect_{_SESSIONS}_notes",
        _session_id(primary_key=True),
        sa.Column("note_key", sa.String(), primary_key=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
    )


def _create_branches() -> None:
    item = sa.ForeignKey(f"{_MESSAGES}.id", ondelete="CASCADE")
    _create(
        _STRUCTURE,
        sa.Column("id", sa.BigInteger(), primary_key=True, autoincrement=True),
        _session_id(nullable=False),
        sa.Column("message_id", sa.BigInteger(), item, nullable=False),
        sa.Column("branch_id", sa.String(), nullable=False, server_default=sa.text("'main'")),
        sa.Column("message_type", sa.Text(), nullable=False),
        sa.Column("sequence_number", sa.BigInteger(), nullable=False),
        sa.Column("user_turn_number", sa.Integer()),
        sa.Column("branch_turn_number", sa.Integer()),
        sa.Column("tool_name", sa.Text()),
        _time("created_at"),
    )
    _index(f"{_STRUCTURE}_in_order", _STRUCTURE, ["session_id", "branch_id", "message_id"])
    _index(f"{_STRUCTURE}_by_item", _STRUCTURE, ["message_id"])
    is_user = sa.text("message_type = 'user'")
    turns = ["session_id", "branch_id", "branch_turn_number"]
    _index(f"{_STRUCTURE}_turns", _STRUCTURE, turns, postgresql_where=is_user)
    _create(
        f"recollect_{_SESSIONS}_branches",
        _session_id(primary_key=True),
        sa.Column("branch_id", sa.String(), primary_key=True),
        sa.Column("is_current", sa.Integer(), nullable=False),
        _time("created_at"),
    )


def _create_usage() -> None:
    _create(
        f"recollect_{_SESSIONS}_usage",
        sa.Column("id", sa.BigInteger(), primary_key=True, autoincrement=True),
        _session_id(nullable=False),
        sa.Column("branch_id", sa.String(), nullable=False, server_default=sa.text("'main'")),
        sa.Column("user_turn_number", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), server_default=sa.text("0")) for name in _COUNTS),
        sa.Column("input_tokens_details", sa.JSON()),
        sa.Column("output_tokens_details", sa.JSON()),
        _time("created_at"),
        sa.UniqueConstraint("session_id", "branch_id", "user_turn_number"),
    )
    _create(
        f"recollect_{_SESSIONS}_runs",
        _session_id(primary_key=True),
        sa.Column("run_id", sa.String(), primary_key=True),
        sa.Column("usage", sa.Text(), nullable=False),
    )


def _create_turns() -> None:
    conversation = sa.ForeignKey("conversations.conversation_id", ondelete="CASCADE")
    _create(
        "chat_turns",
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.Text(), conversation, nullable=False),
        *_texts("agent", "status"),
        *_texts("error_code", required=False),
        *_texts("model", "started_at"),
        *_texts("finished_at", required=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _COUNTS[:3]),
        *_texts("user_message_id", "assistant_message_id", "details"),
        sa.PrimaryKeyConstraint("turn_id"),
    )
    for columns in (["conversation_id", "started_at"], ["tenant", "started_at"]):
        _index(f"recollect_chat_turns_{'_'.join(columns)}", "chat_turns", columns)
    is_running = sa.text("status = 'running'")
    _index("recollect_chat_turns_running", "chat_turns", ["conversation_id"], postgresql_where=is_running)


def _texts(*names: str, required: bool = True) -> list[Any]:
    return [sa.Column(name, sa.Text(), nullable=not required) for name in names]


def _index(name: str, table: str, columns: list[str], **options: Any) -> None:
    op.create_index(name[:63], table, columns, if_not_exists=True, **options)


def _time(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.TIMESTAMP(), nullable=False, server_default=sa.text("CURRENT_TIMESTAMP"))


def _session_id(**options: Any) -> sa.Column[Any]:
    parent = sa.ForeignKey(f"{_SESSIONS}.session_id", ondelete="CASCADE")
    return sa.Column("session_id", sa.String(), parent, **options)


def downgrade() -> None:
    """Drop the tables. The messages stay in the conversations."""
    for table in _TABLES:
        op.drop_table(table)
