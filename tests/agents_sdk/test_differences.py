"""What the page about moving from the SDK says of the differences, of both sides."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import agents
import pytest
from agents.extensions import memory as sdk

import recollect
from recollect.errors import MissingTablesError, WrongKeyError
from recollect.testing.contract import in_event_loop, message, texts

HELLO: Any = [message("hello")]


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection, connection:
        yield connection


@in_event_loop
async def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "none" / "yet" / "sessions.db"
    with pytest.raises(sqlite3.OperationalError):
        agents.SQLiteSession("s", path)
    async with recollect.SQLiteSession("s", path) as session:
        await session.add_items(HELLO)
    assert path.exists()


@in_event_loop
async def test_tables_of_an_advanced_session_that_must_not_be_created(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with pytest.raises(ValueError, match="create_tables=True"):
        theirs = sdk.AdvancedSQLiteSession(session_id="s", db_path=path, create_tables=False)
        await theirs.add_items(HELLO)
    path = tmp_path / "ours.db"
    async with recollect.AdvancedSQLiteSession(session_id="s", db_path=path, create_tables=False) as ours:
        await ours.add_items(HELLO)
        assert len(await ours.list_branches()) == 1


@in_event_loop
async def test_tables_of_a_sqlalchemy_session_that_must_not_be_created(tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path}/sessions.db"
    async with recollect.SQLAlchemySession.from_url("s", url=url) as session:
        with pytest.raises(MissingTablesError):
            await session.add_items(HELLO)


@in_event_loop
async def test_the_order_of_items_and_its_index(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    url = f"sqlite+aiosqlite:///{path}"
    theirs = sdk.SQLAlchemySession.from_url("s", url=url, create_tables=True)
    await theirs.add_items([message("first"), message("second")])  # type: ignore[list-item]
    with opened(path) as file:
        file.execute("UPDATE agent_messages SET created_at = '2020-01-01' WHERE id = 2")
    assert texts(await theirs.get_items()) == ["second", "first"]
    await theirs.engine.dispose()
    async with recollect.SQLAlchemySession.from_url("s", url=url, create_tables=True) as ours:
        assert texts(await ours.get_items()) == ["first", "second"]
    with opened(path) as file:
        indexes = {name for _, name, *_ in file.execute("PRAGMA index_list(agent_messages)")}
    assert indexes == {"idx_agent_messages_session_time", "recollect_agent_messages_by_session"}


@in_event_loop
async def test_an_append_with_a_wrong_key() -> None:
    store = recollect.InMemorySession("s")
    await recollect.EncryptedSession("s", store, "right").add_items(HELLO)
    with pytest.raises(WrongKeyError):
        await recollect.EncryptedSession("s", store, "wrong").add_items(HELLO)
    assert len(await store.get_items()) == 1
    await sdk.EncryptedSession("s", store, "wrong").add_items(HELLO)  # type: ignore[arg-type]
    assert len(await store.get_items()) == 2


def test_a_manager_has_no_dictionary_of_sessions(tmp_path: Path) -> None:
    with closing(recollect.SessionManager(tmp_path / "sessions.db")) as manager:
        session = manager.get_session("ada")
        assert manager.get_session("ada") is session
        assert not {"active_sessions", "close_all"} & set(dir(manager))
        manager.close_all_sessions()
        assert manager.get_session("ada") is not session
