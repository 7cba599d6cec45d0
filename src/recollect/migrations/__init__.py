"""The migrations of a database server, as Alembic revisions. SQLite files migrate when they are opened."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import MissingTablesError, SchemaMismatchError
from ..extras import require_extra
from ..sql.urls import sqlite_path

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy import Connection

T = TypeVar("T")

VERSION_TABLE = "recollect_schema_version"


async def migrate(url: str) -> tuple[str | None, str | None]:
    """Upgrade a database to the newest revision. Returns the revision before and the one after."""
    return await _in_transaction(url, _upgrade)


async def current_revision(url: str) -> str | None:
    """The revision of a database; `None` if it was never migrated."""
    return await _in_transaction(url, _revision)


def newest_revision() -> str:
    """The revision that this version of the package works with."""
    return known_revisions()[0]


@lru_cache
def known_revisions() -> tuple[str, ...]:
    """All revisions that this version of the package knows, the newest first."""
    script: Any = require_extra("postgres", "alembic.script", "migrating a database server")
    steps = script.ScriptDirectory.from_config(_config()).walk_revisions()
    return tuple(step.revision for step in steps)


async def check_revision(url: str) -> None:
    """Check that a database is at the newest revision.

    Raises `MissingTablesError` or `SchemaMismatchError`, whose message says what to do. A SQLite file always
    passes: it is migrated when it is opened.
    """
    if sqlite_path(url) is not None or url.startswith("sqlite"):
        return
    current = await current_revision(url)
    if current is None:
        raise MissingTablesError("the database has no tables yet: run `recollect migrate`")
    if current == newest_revision():
        return
    if current in known_revisions():
        raise SchemaMismatchError(
            f"the database is at revision {current}, and this version of recollect works with"
            f" {newest_revision()}: run `recollect migrate`"
        )
    raise SchemaMismatchError(
        f"the database is at revision {current}, which this version of recollect does not know (its newest is"
        f" {newest_revision()}): start the version that migrated it, or a newer one"
    )


async def _in_transaction(url: str, work: "Callable[[Connection], T]") -> T:
    require_extra("postgres", "alembic", "migrating a database server")
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    from ..sql.sqlalchemy.connections import display_url
    from ..sql.sqlalchemy.errors import explain_connecting
    from ..sql.sqlalchemy.registry import parse_url

    checked = parse_url(url)
    engine = create_async_engine(checked, poolclass=NullPool)
    try:
        async with engine.begin() as connection:
            return await connection.run_sync(work)
    except Exception as error:
        explained = explain_connecting(error, display_url(checked))
        if explained is error:
            raise
        raise explained from error
    finally:
        await engine.dispose()


def _upgrade(connection: "Connection") -> tuple[str | None, str | None]:
    from alembic import command

    if connection.dialect.name == "postgresql":
        # Concurrent migrations wait for each other. The second one then has nothing to do.
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7265636)")
    config = _config()
    config.attributes["connection"] = connection
    before = _revision(connection)
    command.upgrade(config, "head")
    return before, _revision(connection)


def _config() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    return config


def _revision(connection: "Connection") -> str | None:
    from alembic.migration import MigrationContext

    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return context.get_current_revision()
