"""Indexes of runs by age, and of stages and failures by time, to sum tokens by day."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_BY_AGE = "recollect_memory_runs_tenant_status_created_at_run_id"
_SPENT = "prompt_tokens + completion_tokens > 0"
_TIMES = {"memory_run_stages": "finished_at", "memory_run_failures": "failed_at"}


def upgrade() -> None:
    """Create the indexes."""
    op.execute(f"CREATE INDEX IF NOT EXISTS {_BY_AGE} ON memory_runs (tenant, status, created_at, run_id)")
    for table, time in _TIMES.items():
        op.execute(
            f"CREATE INDEX IF NOT EXISTS recollect_{table}_spent ON {table} (tenant, {time}) WHERE {_SPENT}"
        )


def downgrade() -> None:
    """Keep the indexes: they do not disturb older versions."""
