"""Bad input gets one clear error each, which says neither a password nor contents, and loses nothing."""

import asyncio
import logging
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from recollect import (
    AccessDeniedError,
    MissingTablesError,
    NotADatabaseError,
    ReadOnlyError,
    SchemaMismatchError,
    SessionMetadata,
    StorageError,
    UnreachableError,
)
from recollect.sessions.sqlalchemy import SQLAlchemySession
from recollect.testing.contract import in_event_loop, message, texts
from recollect.testing.servers.postgres import PostgresServer

from .database import as_user, by, sql

SECRET = "pa55word"
CONTENTS = "my-secret-word"
BOTH_DRIVERS = pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])


async def every_call_raises(session: SQLAlchemySession, error: type[Exception], match: str) -> None:
    calls: list[Callable[[], Any]] = [
        session.get_items,
        session.pop_item,
        session.clear_session,
        lambda: session.get_items(limit=2),
        lambda: session.add_items([message(CONTENTS)]),
    ]
    for call in calls:
        with pytest.raises(error, match=match) as raised:
            await call()
        said = "".join(traceback.format_exception(raised.value))
        assert SECRET not in said
        assert CONTENTS not in said
    await session.aclose()


# --- URLs and drivers ---


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "postgresql",
        "postgresql:/missing-a-slash",
        "nosuchdatabase://host/name",
        f"postgresql+nosuchdriver://user:{SECRET}@host/name",
        f"postgresql://user:{SECRET}@host:port/name",
        None,
        7,
    ],
    ids=str,
)
def test_what_is_no_url_is_refused_at_once(url: Any) -> None:
    with pytest.raises(ValueError, match="not a database URL") as refused:
        SQLAlchemySession.from_url("s", url=url)
    assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_a_driver_that_is_not_async_is_refused() -> None:
    with pytest.raises(ValueError, match=r"psycopg2 is not an async driver; use postgresql\+asyncpg"):
        SQLAlchemySession.from_url("s", url="postgresql+psycopg2://host/name")


def test_a_database_that_is_not_supported_is_refused() -> None:
    with pytest.raises(ValueError, match="run on PostgreSQL, SQLite, MySQL and MariaDB, not on oracle"):
        SQLAlchemySession.from_url("s", url="oracle+oracledb_async://host/name")


def error_without(module: str, url: str) -> str:
    """What is raised for a URL where a module cannot be had."""
    script = (
        f"import sys; sys.modules[{module!r}] = None\n"  # what Python takes for: not to be had
        "from recollect.sessions.sqlalchemy import SQLAlchemySession\n"
        "try:\n"
        f"    SQLAlchemySession.from_url('s', url={url!r})\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)"
    )
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("module", "url", "driver", "extra"),
    [
        ("asyncpg", "postgresql://h/n", "postgresql+asyncpg", "postgres"),
        ("psycopg", "postgresql+psycopg://h/n", "postgresql+psycopg", "postgres"),
        ("aiosqlite", "sqlite:///p", "sqlite+aiosqlite", "postgres"),
        ("asyncmy", "mysql://h/n", "mysql+asyncmy", "mysql"),
        ("asyncmy", "mariadb://h/n", "mariadb+asyncmy", "mysql"),
    ],
)
def test_a_driver_of_an_extra_that_is_missing_names_the_extra(
    module: str, url: str, driver: str, extra: str
) -> None:
    said = error_without(module, url).strip()
    needs = f"the driver {driver} needs the extra '{extra}'"
    assert said == f"MissingExtraError {needs}: pip install 'recollect-memory[{extra}]'"


def test_a_driver_of_no_extra_is_named() -> None:
    said = error_without("aiomysql", "mysql+aiomysql://h/n")
    assert said == "ValueError mysql+aiomysql is not installed: pip install aiomysql\n"


def test_an_engine_must_be_an_async_one() -> None:
    engine: Any = create_engine("sqlite://")
    with pytest.raises(TypeError, match="must be an AsyncEngine of SQLAlchemy, not Engine"):
        SQLAlchemySession("s", engine=engine)
    engine.dispose()


@pytest.mark.parametrize("name", ["", "a b", 'a"; DROP TABLE x; --', "pg_x", "naïve", "x" * 41, None])
def test_a_hostile_table_name_is_refused(name: Any) -> None:
    for table in ("sessions_table", "messages_table"):
        with pytest.raises(ValueError, match="table"):
            SQLAlchemySession.from_url("s", url="postgresql://host/name", **{table: name})


@pytest.mark.parametrize("session_id", ["", None, 7, b"bytes", "nul\0", "surrogate \ud800"])
def test_a_session_id_must_be_text_that_can_be_stored(session_id: Any) -> None:
    with pytest.raises(ValueError, match="session_id"):
        SQLAlchemySession.from_url(session_id, url="postgresql://host/name")


@BOTH_DRIVERS
@in_event_loop
async def test_long_names_and_words_of_sql_are_fine_as_table_names(postgres_url: str, driver: str) -> None:
    for sessions, messages in (("order", "select"), ("S" * 40, "m" * 40)):
        async with SQLAlchemySession.from_url(
            "'; DROP TABLE x; -- %s ?1 $1",
            url=by(driver, postgres_url),
            create_tables=True,
            sessions_table=sessions,
            messages_table=messages,
        ) as session:
            await session.add_items([message("a")])
            assert await session.add_batch([message("b %s ?1 $1")], "%") is True
            await session.set_metadata(SessionMetadata(title="%s"))
            assert texts(await session.get_items()) == ["a", "b %s ?1 $1"]
            await session.clear_session()


# --- servers that say no ---


@pytest.fixture(scope="module")
def guarded() -> Iterator[PostgresServer]:
    with PostgresServer(password=SECRET) as server:
        yield server


@BOTH_DRIVERS
@in_event_loop
async def test_a_wrong_password_is_told_and_not_shown(
    guarded: PostgresServer, driver: str, tables: dict[str, str]
) -> None:
    url = by(driver, guarded.url)
    async with SQLAlchemySession.from_url("s", url=url, create_tables=True, **tables) as session:
        await session.add_items([message("let in")])
    wrong = url.replace(SECRET, f"{SECRET}-no")
    await every_call_raises(
        SQLAlchemySession.from_url("s", url=wrong, **tables), AccessDeniedError, "user or the password"
    )
    without = url.replace(f":{SECRET}", "")
    await every_call_raises(
        SQLAlchemySession.from_url("s", url=without, **tables), AccessDeniedError, "user or the password"
    )


@BOTH_DRIVERS
@in_event_loop
async def test_a_user_that_is_unknown_or_may_not_is_refused(
    postgres_url: str, driver: str, tables: dict[str, str], role: str
) -> None:
    url = by(driver, postgres_url)
    unknown = SQLAlchemySession.from_url("s", url=as_user("nobody-of-that-name", url))
    await every_call_raises(unknown, AccessDeniedError, "user or the password")
    async with SQLAlchemySession.from_url("s", url=url, create_tables=True, **tables) as session:
        await session.get_items()
    limited = SQLAlchemySession.from_url("s", url=as_user(role, url), **tables)
    await every_call_raises(limited, AccessDeniedError, "lacks the permission")


@BOTH_DRIVERS
@in_event_loop
async def test_a_server_or_database_that_is_not_there(postgres_url: str, driver: str) -> None:
    url = by(driver, postgres_url)
    nowhere = f"postgresql+{driver}://user:{SECRET}@127.0.0.1:9/name"
    await every_call_raises(
        SQLAlchemySession.from_url("s", url=nowhere), UnreachableError, "no connection can be made"
    )
    await every_call_raises(
        SQLAlchemySession.from_url("s", url=url.rpartition("/")[0] + "/nope"),
        NotADatabaseError,
        "no database of that name",
    )


@in_event_loop
async def test_a_password_among_the_options_of_a_url_is_not_shown() -> None:
    url = f"postgresql+asyncpg://user@127.0.0.1:9/name?password={SECRET}"
    await every_call_raises(SQLAlchemySession.from_url("s", url=url), UnreachableError, "127.0.0.1:9/name")


@BOTH_DRIVERS
@in_event_loop
async def test_a_read_only_database_can_be_read(
    postgres_url: str, driver: str, tables: dict[str, str], role: str
) -> None:
    url = by(driver, postgres_url)
    async with SQLAlchemySession.from_url("s", url=url, create_tables=True, **tables) as session:
        await session.add_items([message("kept")])
    sql(postgres_url, f"ALTER ROLE {role} SUPERUSER")
    sql(postgres_url, f"ALTER ROLE {role} SET default_transaction_read_only = on")
    async with SQLAlchemySession.from_url("s", url=as_user(role, url), **tables) as session:
        assert texts(await session.get_items()) == ["kept"]
        writes: list[Callable[[], Any]] = [
            lambda: session.add_items([message("refused")]),
            session.pop_item,
            session.clear_session,
        ]
        for write in writes:
            with pytest.raises(ReadOnlyError, match="read-only"):
                await write()
        assert texts(await session.get_items()) == ["kept"]


# --- tables that are missing, or not ours ---


@BOTH_DRIVERS
@in_event_loop
async def test_missing_tables_say_what_to_run(postgres_url: str, driver: str, tables: dict[str, str]) -> None:
    session = SQLAlchemySession.from_url("s", url=by(driver, postgres_url), **tables)
    await every_call_raises(
        session, MissingTablesError, "run `recollect migrate`, or pass create_tables=True"
    )


@in_event_loop
async def test_missing_tables_of_sqlite_say_it_too(tmp_path: Path) -> None:
    session = SQLAlchemySession.from_url("s", url=f"sqlite+aiosqlite:///{tmp_path}/s.db")
    await every_call_raises(session, MissingTablesError, "recollect migrate")


@pytest.mark.parametrize("create_tables", [False, True])
@BOTH_DRIVERS
@in_event_loop
async def test_tables_of_another_shape_stay_as_they_are(
    postgres_url: str, driver: str, tables: dict[str, str], create_tables: bool
) -> None:
    sessions, messages = tables.values()
    sql(postgres_url, f"CREATE TABLE {sessions} (session_id VARCHAR PRIMARY KEY)")
    sql(postgres_url, f"INSERT INTO {sessions} VALUES ('s')")
    sql(postgres_url, f"CREATE TABLE {messages} (id SERIAL, body TEXT)")
    session = SQLAlchemySession.from_url(
        "s", url=by(driver, postgres_url), create_tables=create_tables, **tables
    )
    await every_call_raises(session, SchemaMismatchError, "do not fit")
    columns = "SELECT column_name FROM information_schema.columns WHERE table_name = %s"
    assert sql(postgres_url, columns, messages) == [("id",), ("body",)]


@BOTH_DRIVERS
@in_event_loop
async def test_a_row_that_others_rules_refuse_is_not_quoted(
    postgres_url: str, driver: str, tables: dict[str, str]
) -> None:
    async with SQLAlchemySession.from_url(
        "s", url=by(driver, postgres_url), create_tables=True, **tables
    ) as session:
        await session.add_items([message("before")])
        sql(
            postgres_url,
            f"ALTER TABLE {tables['messages_table']} ADD CHECK (message_data NOT LIKE '%%word%%')",
        )
        with pytest.raises(StorageError, match="23514") as refused:
            await session.add_items([message("fine"), message(CONTENTS)])
        assert CONTENTS not in "".join(traceback.format_exception(refused.value))
        assert texts(await session.get_items()) == ["before"]


@in_event_loop
async def test_sqlite_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("dear diary " * 100)
    for path, said in (("notes.txt", "not a SQLite database"), (".", "cannot open")):
        session = SQLAlchemySession.from_url("s", url=f"sqlite+aiosqlite:///{tmp_path}/{path}")
        await every_call_raises(session, NotADatabaseError, said)
    assert (tmp_path / "notes.txt").read_text() == "dear diary " * 100
    await asyncio.sleep(0.1)  # the thread of a driver that could not open its file takes leave of the loop


# --- errors of others ---


@pytest.mark.parametrize("error", [OSError, TimeoutError, ConnectionError, LookupError, asyncio.TimeoutError])
@in_event_loop
async def test_what_the_caller_raises_is_not_taken_for_an_error_of_the_server(
    postgres_url: str, tables: dict[str, str], error: type[Exception]
) -> None:
    def fail(_: list[Any]) -> list[Any]:
        raise error("of the caller's own")

    async with SQLAlchemySession.from_url("s", url=postgres_url, create_tables=True, **tables) as session:
        await session.add_items([message("before")])
        with pytest.raises(error, match="of the caller's own") as raised:
            await session.transform_items(fail)
        assert type(raised.value) is error
        assert texts(await session.get_items()) == ["before"]
        await session.add_items([message("after")])


# --- corrupt rows ---

CORRUPT = ["{", "", "null", '"text"', "[1]", '{"a": 1} {"b": 2}', CONTENTS, "1,2"]


@pytest.mark.parametrize("corrupt", CORRUPT, ids=repr)
@in_event_loop
async def test_a_corrupt_row_never_hides_the_rest(
    postgres_url: str, tables: dict[str, str], corrupt: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with SQLAlchemySession.from_url("s", url=postgres_url, create_tables=True, **tables) as session:
        await session.add_items([message("a"), message("b")])
        insert = f"INSERT INTO {tables['messages_table']} (session_id, message_data) VALUES ('s', %s)"
        sql(postgres_url, insert, corrupt)
        await session.add_items([message("c")])
        with caplog.at_level(logging.WARNING):
            assert texts(await session.get_items()) == ["a", "b", "c"]
        assert "row 3 is corrupt" in caplog.text
        assert CONTENTS not in caplog.text
        assert texts(await session.get_items(limit=2)) == ["b", "c"], "a limit counts valid items"
        assert texts([item for _, item in await session.read_before(None, 3)]) == ["a", "b", "c"]
        assert await session.pop_item() == message("c")
        assert await session.pop_item() == message("b"), "the corrupt row was removed on the way"
        assert await session.pop_item() == message("a")
        assert await session.pop_item() is None


@in_event_loop
async def test_contents_are_not_logged(
    postgres_url: str, tables: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    engine = create_async_engine(by("asyncpg", postgres_url), echo=True)
    with caplog.at_level(logging.DEBUG):
        async with SQLAlchemySession("s", engine=engine, create_tables=True, **tables) as session:
            await session.add_items([message(CONTENTS)])
            await session.get_items()
            await session.pop_item()
    assert CONTENTS not in caplog.text
    await engine.dispose()
