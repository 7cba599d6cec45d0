"""The schema of a database server, in ordered steps, by Alembic. SQLite files migrate by themselves."""

from pathlib import Path
from typing import TYPE_CHECKING

from ..extras import require_extra

if TYPE_CHECKING:
    from sqlalchemy import Connection

VERSION_TABLE = "recollect_schema_version"


async def migrate(url: str) -> tuple[str | None, str | None]:
    """Bring a database to the newest revision; returns the revision before and the one after."""
    require_extra("postgres", "alembic", "migrating a database server")
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    from ..sessions.sqlalchemy.connections import name_of
    from ..sessions.sqlalchemy.errors import explain_connecting
    from ..sessions.sqlalchemy.shared import checked_url

    checked = checked_url(url)
    engine = create_async_engine(checked, poolclass=NullPool)
    try:
        async with engine.begin() as connection:
            return await connection.run_sync(_upgrade)
    except Exception as error:
        explained = explain_connecting(error, name_of(checked))
        if explained is error:
            raise
        raise explained from error
    finally:
        await engine.dispose()


def _upgrade(connection: "Connection") -> tuple[str | None, str | None]:
    from alembic import command
    from alembic.config import Config

    if connection.dialect.name == "postgresql":
        # Two migrations at once wait for each other; the second then has nothing to do.
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7265636)")
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    before = _revision(connection)
    command.upgrade(config, "head")
    return before, _revision(connection)


def _revision(connection: "Connection") -> str | None:
    from alembic.migration import MigrationContext

    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return context.get_current_revision()
