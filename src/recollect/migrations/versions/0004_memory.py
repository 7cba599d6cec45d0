"""Long-term memory: memories with their entries, conversations, runs and the queue."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from recollect.sql.sqlalchemy.metadata import Vector

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_TABLES = (
    "memory_keys",
    "memory_embedders",
    "memory_queue",
    "memory_run_failures",
    "memory_run_stages",
    "memory_runs",
    "conversation_messages",
    "conversations",
    "memory_terms",
    "memory_evidence",
    "memory_contents",
    "memories",
)


def upgrade() -> None:
    """Create the missing tables and indexes."""
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    _create_memories()
    _create_contents()
    _create_evidence_and_terms()
    _create_conversations()
    _create_runs()
    _create_work()


def _texts(*names: str, required: bool = True) -> list[Any]:
    return [sa.Column(name, sa.Text(), nullable=not required) for name in names]


def _numbers(*names: str) -> list[Any]:
    return [sa.Column(name, sa.BigInteger(), nullable=False) for name in names]


def _foreign_key(column: str, parent: str) -> Any:
    return sa.Column(column, sa.Text(), sa.ForeignKey(parent, ondelete="CASCADE"), nullable=False)


def _vector() -> list[Any]:
    return [
        sa.Column("content_vector", Vector()),
        sa.Column("vector_model", sa.Text()),
        sa.Column("vector_dimension", sa.BigInteger()),
    ]


def _create(name: str, *parts: Any) -> None:
    op.create_table(name, *parts, if_not_exists=True)


def _index(table: str, *columns: str) -> None:
    op.create_index(f"recollect_{table}_{'_'.join(columns)}", table, list(columns), if_not_exists=True)


def _create_memories() -> None:
    _create(
        "memories",
        *_texts("memory_id", "tenant", "agent_id", "user_id", "owner_key", "user_key"),
        *_texts("created_at", "updated_at"),
        *_numbers("version", "next_position", "entries_stamp", "turns_stamp"),
        sa.PrimaryKeyConstraint("memory_id"),
        sa.UniqueConstraint("owner_key"),
    )
    _index("memories", "user_key")
    _index("memories", "tenant", "memory_id")


def _create_contents() -> None:
    _create(
        "memory_contents",
        *_texts("content_id", "tenant"),
        _foreign_key("memory_id", "memories.memory_id"),
        *_numbers("position"),
        *_texts("content_type", "content_text", "content_data", "text_key"),
        *_texts("slot", required=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        *_texts("learned_at"),
        *_texts("said_at", "valid_from", "valid_to", required=False),
        *_texts("retired_at", "superseded_by", "run_id", required=False),
        *_vector(),
        sa.PrimaryKeyConstraint("content_id"),
        sa.UniqueConstraint("memory_id", "position"),
    )
    _index("memory_contents", "memory_id", "text_key")
    _index("memory_contents", "memory_id", "slot")
    _index("memory_contents", "superseded_by")
    _index("memory_contents", "run_id")
    _index("memory_contents", "vector_model")


def _create_evidence_and_terms() -> None:
    _create(
        "memory_evidence",
        _foreign_key("content_id", "memory_contents.content_id"),
        *_texts("tenant", "conversation_id", "message_id", "source"),
        *_numbers("place"),
        *_texts("wording"),
        sa.PrimaryKeyConstraint("content_id", "source", "conversation_id", "message_id"),
    )
    _index("memory_evidence", "conversation_id", "message_id")
    _create(
        "memory_terms",
        _foreign_key("memory_id", "memories.memory_id"),
        *_texts("tenant", "term"),
        *_numbers("position"),
        sa.PrimaryKeyConstraint("memory_id", "term", "position"),
    )
    _index("memory_terms", "memory_id", "position")


def _create_conversations() -> None:
    _create(
        "conversations",
        *_texts("conversation_id", "tenant", "agent_id", "user_id", "session_id"),
        _foreign_key("memory_id", "memories.memory_id"),
        *_texts("created_at", "updated_at"),
        *_texts("closed_at", "provider_conversation_id", required=False),
        *_texts("memory_strategy", "memory_injection", required=False),
        *_numbers("next_index"),
        *_texts("pipeline_result", required=False),
        sa.PrimaryKeyConstraint("conversation_id"),
    )
    _index("conversations", "memory_id", "created_at")
    _index("conversations", "session_id")
    _create(
        "conversation_messages",
        _foreign_key("conversation_id", "conversations.conversation_id"),
        *_texts("tenant", "memory_id"),
        *_numbers("message_index"),
        *_texts("message_id", "role", "content", "created_at"),
        *_vector(),
        sa.PrimaryKeyConstraint("conversation_id", "message_index"),
        sa.UniqueConstraint("conversation_id", "message_id"),
    )
    _index("conversation_messages", "memory_id")
    _index("conversation_messages", "vector_model")


def _create_runs() -> None:
    _create(
        "memory_runs",
        *_texts("run_id", "tenant"),
        _foreign_key("memory_id", "memories.memory_id"),
        _foreign_key("conversation_id", "conversations.conversation_id"),
        *_numbers("sequence", "first_index", "last_index"),
        *_texts("status"),
        *_numbers("is_open", "attempts"),
        *_texts("created_at"),
        *_texts("started_at", "finished_at", "error", "model", required=False),
        sa.PrimaryKeyConstraint("run_id"),
        sa.UniqueConstraint("memory_id", "sequence"),
    )
    _index("memory_runs", "memory_id", "is_open", "sequence")
    _index("memory_runs", "conversation_id")
    _index("memory_runs", "tenant", "status", "created_at")


def _create_work() -> None:
    _create(
        "memory_run_stages",
        _foreign_key("run_id", "memory_runs.run_id"),
        *_texts("tenant", "stage", "model", "finished_at", "result", "raw_response"),
        *_numbers("prompt_tokens", "completion_tokens"),
        sa.PrimaryKeyConstraint("run_id", "stage"),
    )
    _create(
        "memory_run_failures",
        _foreign_key("run_id", "memory_runs.run_id"),
        *_texts("tenant"),
        *_numbers("attempt"),
        *_texts("stage", "failed_at", "error", "raw_response"),
        *_numbers("prompt_tokens", "completion_tokens"),
        sa.PrimaryKeyConstraint("run_id", "attempt"),
    )
    _create(
        "memory_queue",
        _foreign_key("memory_id", "memories.memory_id"),
        *_texts("tenant"),
        sa.Column("available_at", sa.Double(), nullable=False),
        *_texts("lease", required=False),
        sa.PrimaryKeyConstraint("memory_id"),
    )
    _index("memory_queue", "available_at")
    _index("memory_queue", "tenant", "available_at")
    _create(
        "memory_embedders", *_texts("tenant", "vector_model", "chosen_at"), sa.PrimaryKeyConstraint("tenant")
    )
    _create("memory_keys", *_texts("tenant", "secret"), sa.PrimaryKeyConstraint("tenant"))


def downgrade() -> None:
    """Drop the tables. The extension stays, because other programs may use it."""
    for table in _TABLES:
        op.drop_table(table)
