"""Which revision a database is at, and what is said about another than the newest."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

import recollect.migrations
from recollect.errors import MissingTablesError, SchemaMismatchError, UnreachableError
from recollect.migrations import migrate
from recollect.sql.schema import VERSIONS
from recollect.sql.sqlalchemy import revisions
from recollect.sql.sqlalchemy.revisions import check_revision, current_revision
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


def test_the_revisions_are_the_versions() -> None:
    folder = ScriptDirectory(str(Path(recollect.migrations.__file__).parent))
    assert tuple(step.revision for step in folder.walk_revisions())[::-1] == VERSIONS


@in_event_loop
async def test_a_database_without_tables_and_at_the_newest_revision(empty_database: str) -> None:
    assert await current_revision(empty_database) is None
    with pytest.raises(MissingTablesError, match="run `recollect migrate`"):
        await check_revision(empty_database)
    await migrate(empty_database)
    assert await current_revision(empty_database) == VERSIONS[-1]
    await check_revision(empty_database)


@in_event_loop
async def test_a_database_that_is_behind_names_the_command(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await migrate(empty_database)
    monkeypatch.setattr(revisions, "VERSIONS", (*VERSIONS, "9.0.0"))
    with pytest.raises(SchemaMismatchError, match=r"is at revision 0.1.0, .* run `recollect migrate`"):
        await check_revision(empty_database)


@in_event_loop
async def test_a_file_is_always_in_order(tmp_path: Path) -> None:
    await check_revision(str(tmp_path / "none.db"))
    await check_revision(f"sqlite:///{tmp_path}/none.db")


@in_event_loop
async def test_a_server_that_is_not_there_is_told() -> None:
    with pytest.raises(UnreachableError):
        await check_revision("postgresql://nobody@127.0.0.1:9/x")
