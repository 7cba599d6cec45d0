"""How Alembic runs the steps: on the connection it is given, in the transaction of whoever gave it."""

from alembic import context

from recollect.migrations import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
context.run_migrations()
