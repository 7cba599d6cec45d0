"""Bad input gets one clear error each, and loses nothing."""

import asyncio
import logging
import os
import resource
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recollect import (
    DiskFullError,
    NotADatabaseError,
    ReadOnlyError,
    SchemaMismatchError,
    SessionManager,
    SQLiteSession,
    StorageError,
)
from recollect.items import Item
from recollect.testing.contract import in_event_loop, message, texts

from .test_processes import in_child


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def run_sql(path: Path, sql: str, *parameters: object) -> None:
    connection = sqlite3.connect(path)
    connection.execute(sql, parameters)
    connection.commit()
    connection.close()


# --- names ---


@pytest.mark.parametrize("session_id", ["", None, 7, b"bytes", "nul\0", "surrogate \ud800"])
def test_a_session_id_must_be_text_that_can_be_stored(session_id: Any) -> None:
    with pytest.raises(ValueError, match="session_id"):
        SQLiteSession(session_id)


@pytest.mark.parametrize(
    "table",
    [
        "",
        "a b",
        'a"; DROP TABLE x; --',
        "1st",
        "main.x",
        "naïve",
        "x" * 41,
        "sqlite_master",
        "recollect_x",
        None,
    ],
)
def test_a_hostile_table_name_is_refused(table: Any) -> None:
    with pytest.raises(ValueError, match="table"):
        SQLiteSession("s", sessions_table=table)
    with pytest.raises(ValueError, match="table"):
        SQLiteSession("s", messages_table=table)


def test_one_table_cannot_be_both() -> None:
    with pytest.raises(ValueError, match="two tables"):
        SQLiteSession("s", sessions_table="same", messages_table="SAME")


@in_event_loop
async def test_words_of_sql_are_fine_as_table_names(path: Path) -> None:
    async with SQLiteSession("s", path, "order", "select") as session:
        await session.add_items([message("a")])
        assert texts(await session.get_items()) == ["a"]


@pytest.mark.parametrize(
    ("options", "named"), [({"durability": "none"}, "durability"), ({"busy_timeout": -1}, "busy_timeout")]
)
def test_a_bad_option_is_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        SQLiteSession("s", **options)


@pytest.mark.parametrize("settings", [{"limit": -1}, {"limits": 3}])
def test_bad_settings_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="limit"):
        SQLiteSession("s", session_settings=settings)


@pytest.mark.parametrize("limit", ["5", 2.0, True])
@in_event_loop
async def test_a_limit_must_be_a_whole_number(limit: Any) -> None:
    with pytest.raises(TypeError, match="limit"):
        await SQLiteSession("s").get_items(limit=limit)


# --- files that are no database, or not ours to write ---


async def every_call_raises(session: SQLiteSession, error: type[Exception], match: str) -> None:
    calls: list[Callable[[], Any]] = [
        session.get_items,
        session.pop_item,
        session.clear_session,
        lambda: session.get_items(limit=2),
        lambda: session.add_items([message("a")]),
    ]
    for call in calls:
        with pytest.raises(error, match=match):
            await call()
    session.close()


@in_event_loop
async def test_a_folder_is_not_a_database(tmp_path: Path) -> None:
    await every_call_raises(SQLiteSession("s", tmp_path), NotADatabaseError, "folder")


@in_event_loop
async def test_a_file_as_parent_folder_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    path = tmp_path / "file" / "sessions.db"
    await every_call_raises(SQLiteSession("s", path), NotADatabaseError, "cannot open")


@in_event_loop
async def test_a_text_file_is_not_a_database_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary " * 100)
    await every_call_raises(SQLiteSession("s", path), NotADatabaseError, "not a SQLite database")
    assert path.read_text() == "dear diary " * 100


@in_event_loop
async def test_tables_of_another_shape_are_named_and_stay_as_they_are(path: Path) -> None:
    run_sql(path, "CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, body TEXT)")
    await every_call_raises(SQLiteSession("s", path), SchemaMismatchError, "'agent_messages'.*message_data")
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("agent_messages",)]
    connection.close()


def as_nobody(work: Callable[[], None]) -> int:
    """Run work in a child process without the rights of root, to whom no file is read-only."""

    def without_rights() -> None:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        work()

    return in_child(without_rights)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become somebody else")
def test_a_read_only_file_can_be_read_and_a_write_is_a_clear_error(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    path = folder / "sessions.db"
    session = SQLiteSession("s", path)
    asyncio.run(session.add_items([message("kept")]))
    for part in (*tmp_path.parents, tmp_path):
        if str(part).startswith("/tmp/"):
            os.chmod(part, 0o755)
    path.chmod(0o444)
    folder.chmod(0o777)  # the log beside the file can be made, the file itself not written

    def read_and_fail_to_write() -> None:
        async def use() -> None:
            other = SQLiteSession("s", path)
            assert texts(await other.get_items()) == ["kept"]
            with pytest.raises(ReadOnlyError, match="cannot be written to"):
                await other.add_items([message("refused")])
            assert texts(await other.get_items()) == ["kept"]

        asyncio.run(use())

    assert as_nobody(read_and_fail_to_write) == 0
    assert texts(asyncio.run(session.get_items())) == ["kept"]
    session.close()


def test_a_full_disk_is_a_clear_error_and_what_was_stored_stays(path: Path) -> None:
    """The size of files is limited for a child process: to SQLite it looks as a disk that ends there."""

    def fill_up() -> None:
        async def use() -> None:
            session = SQLiteSession("s", path)
            await session.add_items([message("before")])
            resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
            with pytest.raises(StorageError, match=r"sessions\.db"):
                for _ in range(100):
                    await session.add_items([message("x" * 10_000)] * 3)
            stored = texts(await session.get_items())
            assert stored[0] == "before"
            assert len(stored) % 3 == 1, "whole batches only"

        asyncio.run(use())

    assert in_child(fill_up) == 0
    session = SQLiteSession("s", path)
    before = asyncio.run(session.get_items())
    assert len(before) % 3 == 1
    asyncio.run(session.add_items([message("after")]))
    assert texts(asyncio.run(session.get_items()))[-1] == "after"
    session.close()


@in_event_loop
async def test_sqlites_own_word_for_a_full_disk_is_ours_too(path: Path) -> None:
    session = SQLiteSession("s", path)
    await session.add_items([message("before")])

    def limit_size() -> Any:
        from recollect.sql.scripts import Statement

        yield Statement("PRAGMA max_page_count=20")

    await session._engine.write(limit_size)
    with pytest.raises(DiskFullError, match=r"no space left to write to .*sessions\.db"):
        await session.add_items([message("x" * 200_000)])
    assert texts(await session.get_items()) == ["before"]
    session.close()


# --- corrupt rows ---

CORRUPT = ["{", "", "null", '"text"', "[1]", b"\xff\xfe", b'{"a": "\xff"}', 7, '{"a": 1} {"b": 2}']


@pytest.mark.parametrize("corrupt", CORRUPT, ids=repr)
@in_event_loop
async def test_a_corrupt_row_never_hides_the_rest(
    path: Path, corrupt: object, caplog: pytest.LogCaptureFixture
) -> None:
    session = SQLiteSession("s", path)
    await session.add_items([message("a"), message("b")])
    run_sql(path, "INSERT INTO agent_messages (session_id, message_data) VALUES ('s', ?)", corrupt)
    await session.add_items([message("c")])
    with caplog.at_level(logging.WARNING):
        assert texts(await session.get_items()) == ["a", "b", "c"]
    assert "row 3 is corrupt" in caplog.text
    assert texts(await session.get_items(limit=2)) == ["b", "c"], "a limit counts valid items"
    assert texts([item for _, item in await session.read_before(None, 3)]) == ["a", "b", "c"]
    assert texts([item for _, item in await session.read_after(0, 3)]) == ["a", "b", "c"]
    assert await session.pop_item() == message("c")
    assert await session.pop_item() == message("b"), "the corrupt row was removed on the way"
    assert await session.pop_item() == message("a")
    assert await session.pop_item() is None
    session.close()


@in_event_loop
async def test_a_limit_counts_valid_items_across_a_wide_gap(path: Path) -> None:
    session = SQLiteSession("s", path)
    await session.add_items([message(n) for n in range(3)])
    for _ in range(20):
        run_sql(path, "INSERT INTO agent_messages (session_id, message_data) VALUES ('s', 'bad')")
    await session.add_items([message(3)])
    assert texts(await session.get_items(limit=3)) == ["1", "2", "3"]
    session.close()


@in_event_loop
async def test_contents_never_reach_the_log(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    session = SQLiteSession("s", path)
    with caplog.at_level(logging.DEBUG):
        await session.add_items([message("my-secret-word")])
        run_sql(path, "INSERT INTO agent_messages (session_id, message_data) VALUES ('s', 'my-secret-word')")
        await session.get_items()
        await session.pop_item()
        with pytest.raises(TypeError) as refused:
            await session.add_items([{"content": ("my-secret-word",)}])
    assert "my-secret-word" not in caplog.text
    assert "my-secret-word" not in str(refused.value)
    session.close()


@pytest.mark.parametrize(
    "error", [UnicodeDecodeError("utf-8", b"", 0, 1, "mine"), MemoryError("mine"), OSError(5)]
)
@in_event_loop
async def test_an_error_of_a_callers_function_stays_their_own(path: Path, error: Exception) -> None:
    def change(_: list[Item]) -> list[Item]:
        raise error

    async with SQLiteSession("s", path) as session:
        await session.add_items([message("a")])
        with pytest.raises(type(error)) as raised:
            await session.transform_items(change)
        assert raised.value is error
        assert texts(await session.get_items()) == ["a"]


@in_event_loop
async def test_a_text_that_is_damaged_is_not_quoted(path: Path) -> None:
    async with SQLiteSession("s", path) as session:
        await session.add_items([message("a")])
    run_sql(path, "INSERT INTO agent_sessions (session_id) VALUES (CAST(x'6d79736563726574ff' AS TEXT))")
    with pytest.raises(StorageError) as told:
        await SessionManager(path).list_sessions()
    assert "mysecret" not in str(told.value) + str(told.value.__cause__)
