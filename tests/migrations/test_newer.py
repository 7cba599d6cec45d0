"""A database whose tables a newer version of Recollect made is refused with one line, and is not changed."""

import os
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from recollect import EventLog, MemoryStore, SchemaMismatchError, SQLAlchemySession, SQLiteSession
from recollect.cli import main
from recollect.migrations import migrate
from recollect.sql.sqlalchemy.revisions import check_revision
from recollect.sql.sqlite.registry import close_all
from recollect.testing.contract import in_event_loop, message

from ..sessions.postgres.database import by, sql
from ..sessions.sqlite.test_bad_input import as_nobody
from .test_migrations import empty_database

__all__ = ["empty_database"]

REFUSED = "has tables of version 9.0.0, which this version of recollect does not know"
Use = Callable[[str], Awaitable[Any]]


async def use_session(place: str) -> None:
    async with SQLiteSession("s", place) as session:
        await session.get_items()


async def use_session_by_sqlalchemy(place: str) -> None:
    async with SQLAlchemySession.from_url("s", url=place) as session:
        await session.get_items()


async def use_file_by_sqlalchemy(place: str) -> None:
    await use_session_by_sqlalchemy(f"sqlite+aiosqlite:///{place}")


async def use_events(place: str) -> None:
    async with EventLog(place) as log:
        await log.append("c", [message("a")])


async def use_memory(place: str) -> None:
    async with MemoryStore(place, workers=0, embedder=None) as store:
        await store.record_conversation("agent", "user", [{"role": "user", "content": "I sail."}])


async def use_memory_and_create_tables(place: str) -> None:
    async with MemoryStore(place, workers=0, embedder=None, create_tables=True) as store:
        await store.get_memory("agent", "user")


@pytest.fixture
def newer_file(tmp_path: Path) -> Path:
    """A file of this version, with a step that a later one has recorded."""
    path = tmp_path / "newer.db"
    assert main(["keys", "create", "--url", str(path), "--tenant", "t", "--scope", "read"]) == 0
    close_all()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO recollect_migrations (scope, step) VALUES ('service', '9.0.0')")
    return path


def dump_of(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


@pytest.mark.parametrize("use", [use_session, use_file_by_sqlalchemy, use_events, use_memory])
@in_event_loop
async def test_a_newer_file_is_refused(newer_file: Path, use: Use) -> None:
    before = dump_of(newer_file)
    with pytest.raises(SchemaMismatchError, match=REFUSED):
        await use(str(newer_file))
    assert dump_of(newer_file) == before


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become another user")
def test_a_newer_file_that_is_read_only_is_refused(newer_file: Path) -> None:
    for folder in (newer_file.parent, *newer_file.parents):
        if str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    newer_file.chmod(0o444)

    @in_event_loop
    async def use() -> None:
        with pytest.raises(SchemaMismatchError, match=REFUSED):
            await use_session(str(newer_file))

    as_nobody(use)


def test_a_service_does_not_start_on_a_newer_file(
    newer_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["serve", "--port", "0", "--url", str(newer_file)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert REFUSED in line


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
@pytest.mark.parametrize(
    "use", [use_session_by_sqlalchemy, use_events, use_memory, use_memory_and_create_tables, migrate]
)
@in_event_loop
async def test_a_newer_server_is_refused(empty_database: str, use: Use, driver: str) -> None:
    await migrate(empty_database)
    sql(empty_database, "UPDATE recollect_schema_version SET version_num = '9.0.0'")
    with pytest.raises(SchemaMismatchError, match=REFUSED):
        await use(by(driver, empty_database))
    with pytest.raises(SchemaMismatchError, match=REFUSED):
        await check_revision(empty_database)


def test_a_service_does_not_start_on_a_newer_server(
    empty_database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["migrate", "--url", empty_database]) == 0
    sql(empty_database, "UPDATE recollect_schema_version SET version_num = '9.0.0'")
    capsys.readouterr()
    assert main(["serve", "--port", "0", "--url", empty_database]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert REFUSED in line


@in_event_loop
async def test_a_running_process_goes_on_while_the_server_is_migrated(empty_database: str) -> None:
    await migrate(empty_database)
    async with MemoryStore(empty_database, workers=0, embedder=None) as store:
        await store.record_conversation("agent", "user", [{"role": "user", "content": "I sail."}])
        sql(empty_database, "UPDATE recollect_schema_version SET version_num = '9.0.0'")
        assert len(await store.list_conversations()) == 1
