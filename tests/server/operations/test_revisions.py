"""Which revision a database is at, and what is said about another than the newest."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect.migrations
from recollect.errors import MissingTablesError, SchemaMismatchError, UnreachableError
from recollect.migrations import VERSION_TABLE, check_revision, current_revision, migrate, newest_revision
from recollect.testing.contract import in_event_loop

from ...sessions.postgres.database import sql

_NAME = "revisions"


@pytest.fixture
def empty_database(postgres_url: str) -> Iterator[str]:
    """A database of its own on the server."""
    sql(postgres_url, f"DROP DATABASE IF EXISTS {_NAME} WITH (FORCE)")
    sql(postgres_url, f"CREATE DATABASE {_NAME}")
    yield postgres_url.rpartition("/")[0] + f"/{_NAME}"
    sql(postgres_url, f"DROP DATABASE {_NAME} WITH (FORCE)")


def test_the_newest_revision_is_that_of_the_last_file() -> None:
    files = sorted((Path(recollect.migrations.__file__).parent / "versions").glob("[0-9]*.py"))
    assert re.search(rf'^revision = "{newest_revision()}"', files[-1].read_text("utf-8"), re.M)


@in_event_loop
async def test_a_database_without_tables_behind_at_the_newest_and_ahead(empty_database: str) -> None:
    assert await current_revision(empty_database) is None
    with pytest.raises(MissingTablesError, match="run `recollect migrate`"):
        await check_revision(empty_database)

    await migrate(empty_database)
    assert await current_revision(empty_database) == newest_revision()
    await check_revision(empty_database)

    sql(empty_database, f"UPDATE {VERSION_TABLE} SET version_num = '0001'")
    with pytest.raises(SchemaMismatchError, match=r"is at revision 0001, .* run `recollect migrate`"):
        await check_revision(empty_database)

    sql(empty_database, f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    with pytest.raises(SchemaMismatchError, match=r"9999, which this version of recollect does not know"):
        await check_revision(empty_database)


@in_event_loop
async def test_a_file_is_always_in_order(tmp_path: Path) -> None:
    await check_revision(str(tmp_path / "none.db"))
    await check_revision(f"sqlite:///{tmp_path}/none.db")


@in_event_loop
async def test_a_server_that_is_not_there_is_told() -> None:
    with pytest.raises(UnreachableError):
        await check_revision("postgresql://nobody@127.0.0.1:9/x")
