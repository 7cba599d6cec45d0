"""The checkpoints and the store of LangGraph."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_THREADS = "langgraph_threads"
_CHECKPOINTS = "langgraph_checkpoints"
_STORE = "langgraph_store_items"
_TIME = sa.Text().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
_TABLES = (
    "langgraph_store_vectors",
    _STORE,
    "langgraph_writes",
    "langgraph_items",
    "langgraph_values",
    _CHECKPOINTS,
    _THREADS,
)


def upgrade() -> None:
    """Create the tables that are missing."""
    _create_threads()
    _create_checkpoints()
    _create_values()
    _create_writes()
    _create_store()


def _create(name: str, *parts: Any) -> None:
    op.create_table(name, *parts, if_not_exists=True)


def _thread() -> sa.Column[Any]:
    parent = sa.ForeignKey(f"{_THREADS}.id", ondelete="CASCADE")
    return sa.Column("thread", sa.BigInteger(), parent, nullable=False, autoincrement=False)


def _required(name: str, kind: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def _encoded(kind: str = "kind", value: str = "value") -> tuple[sa.Column[Any], sa.Column[Any]]:
    return _required(kind, sa.Text()), _required(value, sa.LargeBinary())


def _create_threads() -> None:
    _create(
        _THREADS,
        sa.Column("id", sa.BigInteger(), primary_key=True, autoincrement=True),
        _required("thread_id", sa.String()),
        _required("checkpoint_ns", sa.String()),
        sa.Column("user_id", sa.Text()),
        _required("generation", sa.BigInteger()),
        _required("created_at", _TIME),
        _required("updated_at", _TIME),
        sa.UniqueConstraint("thread_id", "checkpoint_ns"),
    )
    _index_where(_THREADS, "by_user", "user_id")


def _create_checkpoints() -> None:
    _create(
        _CHECKPOINTS,
        _thread(),
        _required("checkpoint_id", sa.String()),
        sa.Column("parent_id", sa.String()),
        sa.Column("run_id", sa.String()),
        *_encoded(value="checkpoint"),
        *_encoded("metadata_kind", "metadata"),
        sa.PrimaryKeyConstraint("thread", "checkpoint_id"),
    )
    _index_where(_CHECKPOINTS, "by_run", "run_id")


def _create_values() -> None:
    _create(
        "langgraph_values",
        _thread(),
        _required("channel", sa.String()),
        _required("version", sa.String()),
        *_encoded(),
        sa.PrimaryKeyConstraint("thread", "version", "channel"),
    )
    _create(
        "langgraph_items",
        _thread(),
        _required("channel", sa.String()),
        sa.Column("position", sa.BigInteger(), nullable=False, autoincrement=False),
        *_encoded(),
        sa.PrimaryKeyConstraint("thread", "channel", "position"),
    )


def _create_writes() -> None:
    _create(
        "langgraph_writes",
        _thread(),
        _required("checkpoint_id", sa.String()),
        _required("task_id", sa.String()),
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        _required("task_path", sa.Text()),
        _required("channel", sa.Text()),
        *_encoded(),
        sa.PrimaryKeyConstraint("thread", "checkpoint_id", "task_id", "number"),
    )


def _create_store() -> None:
    _create(
        _STORE,
        _required("namespace", sa.LargeBinary()),
        _required("key", sa.String()),
        _required("value", sa.Text()),
        _required("created_at", _TIME),
        _required("updated_at", _TIME),
        sa.Column("ttl_minutes", sa.Double()),
        sa.Column("expires_at", _TIME),
        sa.PrimaryKeyConstraint("namespace", "key"),
    )
    _index_where(_STORE, "expiring", "expires_at")
    _create(
        "langgraph_store_vectors",
        _required("namespace", sa.LargeBinary()),
        _required("key", sa.String()),
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        _required("text", sa.Text()),
        _required("embedder", sa.String()),
        _required("vector", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("namespace", "key", "number"),
    )


def _index_where(table: str, name: str, column: str) -> None:
    op.create_index(
        f"recollect_{table}_{name}",
        table,
        [column],
        postgresql_where=sa.text(f"{column} IS NOT NULL"),
        sqlite_where=sa.text(f"{column} IS NOT NULL"),
        if_not_exists=True,
    )


def downgrade() -> None:
    """Drop the checkpoints and the store."""
    for table in _TABLES:
        op.drop_table(table)
