"""The table of turns for SQLAlchemy, with its foreign key to the conversations of the memory schema."""

import sqlalchemy as sa

from ....memory.database.schema import MemorySchema
from ....sql.sqlalchemy.metadata import TYPES
from .schema import CHAT_TURNS


def describe() -> sa.MetaData:
    """The tables that the migrations end with, and that `create_tables=True` creates."""
    metadata = sa.MetaData()
    parent = MemorySchema().describe().tables["conversations"].columns["conversation_id"]
    columns = [
        sa.Column(
            column.name,
            TYPES[column.kind],
            *([sa.ForeignKey(parent, ondelete="CASCADE")] if column.parent else []),
            nullable=not column.required,
        )
        for column in CHAT_TURNS.columns
    ]
    indexes = [sa.Index(CHAT_TURNS.index_name(names), *names) for names in CHAT_TURNS.indexes]
    for index in CHAT_TURNS.partial:
        name, where = CHAT_TURNS.index_name((index.name,)), sa.text(index.where)
        indexes.append(sa.Index(name, *index.columns, postgresql_where=where, sqlite_where=where))
    sa.Table(CHAT_TURNS.name, metadata, *columns, sa.PrimaryKeyConstraint(*CHAT_TURNS.key), *indexes)
    return metadata
