"""Vectors: indexes of the rows to embed and of nearest neighbours (HNSW), and storage within rows."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_TO_EMBED = {"memory_contents": "retired_at IS NULL", "conversation_messages": "role <> 'system'"}
_DIMENSIONS = (384, 512, 1536)


def upgrade() -> None:
    """Create the missing indexes, and store vectors within their rows."""
    for table, condition in _TO_EMBED.items():
        op.execute(f"DROP INDEX IF EXISTS recollect_{table}_vector_model")
        op.execute(
            f"CREATE INDEX IF NOT EXISTS recollect_{table}_to_embed ON {table} (tenant, vector_model)"
            f" WHERE {condition}"
        )
        op.execute(f"ALTER TABLE {table} ALTER COLUMN content_vector SET STORAGE MAIN")
        for dimension in _DIMENSIONS:
            op.execute(
                f"CREATE INDEX IF NOT EXISTS recollect_{table}_nearest_{dimension} ON {table}"
                f" USING hnsw (CAST(content_vector AS halfvec({dimension})) halfvec_cosine_ops)"
                f" WHERE vector_dimension = {dimension}"
            )


def downgrade() -> None:
    """Restore the plain index of the revision before."""
    for table in _TO_EMBED:
        op.execute(f"DROP INDEX IF EXISTS recollect_{table}_to_embed")
        for dimension in _DIMENSIONS:
            op.execute(f"DROP INDEX IF EXISTS recollect_{table}_nearest_{dimension}")
        op.execute(f"ALTER TABLE {table} ALTER COLUMN content_vector SET STORAGE EXTERNAL")
        op.execute(f"CREATE INDEX IF NOT EXISTS recollect_{table}_vector_model ON {table} (vector_model)")
