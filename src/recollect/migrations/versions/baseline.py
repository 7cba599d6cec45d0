"""Everything: the tables of the Agents SDK, and ours. Tables that the SDK created stay.

The schemas describe the tables. Until 0.1.0 is tagged, a change edits these descriptions, and a database of
an earlier state is created anew.
"""

from alembic import op

from recollect.migrations import all_schemas
from recollect.sql.sqlalchemy.metadata import (
    create_missing_indexes,
    create_missing_tables,
    tables_with_indexes,
)

revision = "0.1.0"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the missing tables and indexes."""
    for schema in all_schemas():
        create_missing_tables(schema, op.get_bind())
        for table in tables_with_indexes(schema):
            create_missing_indexes(table, op.get_bind())
