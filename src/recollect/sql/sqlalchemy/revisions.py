"""The revision of a database server: the version of its tables, which `recollect migrate` records."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ...errors import MissingTablesError, SchemaMismatchError
from ...extras import require_extra
from ..schema import VERSIONS, check_versions
from ..scripts import Script, Statement
from ..urls import sqlite_path

if TYPE_CHECKING:
    from sqlalchemy import Connection

T = TypeVar("T")

VERSION_TABLE = "recollect_schema_version"
READ_REVISION = f"SELECT version_num FROM {VERSION_TABLE}"


async def current_revision(url: str) -> str | None:
    """The revision of a database; `None` if it was never migrated."""
    return await in_transaction(url, read_revision)


async def check_revision(url: str) -> None:
    """Check that a database is at the newest revision.

    Raises `MissingTablesError` or `SchemaMismatchError`, whose message says what to do. A SQLite file always
    passes: it is checked and migrated when it is opened.
    """
    if sqlite_path(url) is not None or url.startswith("sqlite"):
        return
    current = await current_revision(url)
    if current is None:
        raise MissingTablesError("the database has no tables yet: run `recollect migrate`")
    check_versions([current])
    if current != VERSIONS[-1]:
        raise SchemaMismatchError(
            f"the database is at revision {current}, and this version of recollect works with"
            f" {VERSIONS[-1]}: run `recollect migrate`"
        )


def check_server_version() -> Script[None]:
    """Raise `SchemaMismatchError` if a newer version of Recollect migrated the PostgreSQL database."""
    rows = yield Statement(f"SELECT to_regclass('{VERSION_TABLE}') IS NOT NULL")
    if rows[0][0]:
        rows = yield Statement(READ_REVISION)
        check_versions(revision for (revision,) in rows)


async def in_transaction(url: str, work: "Callable[[Connection], T]") -> T:
    """Connect to a database server, and return what a function does in a transaction."""
    require_extra("postgres", "sqlalchemy", "a database server")
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    from .connections import display_url
    from .errors import explain_connecting
    from .registry import parse_url

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


def read_revision(connection: "Connection") -> str | None:
    """The revision that a database records."""
    from sqlalchemy import inspect

    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.exec_driver_sql(READ_REVISION).scalar()


def has_pgvector(connection: "Connection") -> bool:
    """Whether the extension of long-term memory is installed on a PostgreSQL server, or can be."""
    known = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
    return connection.exec_driver_sql(known).first() is not None
