"""The search records of messages."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_TABLE = "message_records"
_PARTS = ("head", "terms", "counts", "vectors")


def upgrade() -> None:
    """Create the table if it is missing. The records of earlier messages are made in the background."""
    op.create_table(
        _TABLE,
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("stamp", sa.BigInteger(), nullable=False),
        sa.Column("vector_model", sa.Text(), nullable=True),
        *(sa.Column(name, sa.LargeBinary(), nullable=True) for name in _PARTS),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.conversation_id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("conversation_id", "message_id"),
        if_not_exists=True,
    )
    for name in _PARTS:  # hashes and vectors cannot be compressed
        op.execute(f"ALTER TABLE {_TABLE} ALTER COLUMN {name} SET STORAGE EXTERNAL")
    op.execute(f"ALTER TABLE {_TABLE} SET (toast_tuple_target = 8160)")
    op.create_index(f"recollect_{_TABLE}_memory_id_stamp", _TABLE, ["memory_id", "stamp"], if_not_exists=True)
    op.create_index(
        f"recollect_{_TABLE}_to_make",
        _TABLE,
        ["tenant"],
        postgresql_where=sa.text("head IS NULL"),
        if_not_exists=True,
    )
    op.execute(
        f"INSERT INTO {_TABLE} (conversation_id, tenant, memory_id, message_id, stamp)"
        " SELECT said.conversation_id, said.tenant, said.memory_id, said.message_id, owner.turns_stamp"
        " FROM conversation_messages AS said JOIN memories AS owner ON owner.memory_id = said.memory_id"
        " WHERE said.role <> 'system' ON CONFLICT DO NOTHING"
    )


def downgrade() -> None:
    """Drop it: searches analyse the texts of messages again."""
    op.drop_table(_TABLE)
