"""Alembic's environment: runs the revisions on the connection of the caller, in its transaction."""

from alembic import context

from recollect.migrations import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
context.run_migrations()
