"""What the SDK's `SQLAlchemySession` offers beside the four methods."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from recollect import AdvancedSQLAlchemySession, SessionManager, SQLAlchemySession, StorageError
from recollect.providers.openai.sessions import OpenAISQLAlchemySessionStore
from recollect.testing.contract import in_event_loop, message, texts

from .database import by, sql

WORDS = ["naïve", "中文 🙂", 'quoted " and \\ backslash', "\u2028 line", "plain"]


# --- the engine ---


@in_event_loop
async def test_the_engine_that_was_passed_in_can_be_asked_for(postgres_url: str) -> None:
    engine = create_async_engine(by("asyncpg", postgres_url))
    async with SQLAlchemySession("s", engine=engine) as session:
        assert session.engine is engine
    await engine.dispose()


@in_event_loop
async def test_sessions_of_a_url_show_the_engine_they_share(
    postgres_url: str, tables: dict[str, str]
) -> None:
    sessions = [SQLAlchemySession.from_url(name, url=postgres_url, **tables) for name in ("a", "b")]
    assert sessions[0].engine is sessions[1].engine
    async with sessions[0].engine.connect() as connection:
        assert (await connection.exec_driver_sql("SELECT 1")).scalar() == 1
    for session in sessions:
        await session.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        _ = sessions[0].engine


def test_the_engine_can_be_asked_for_where_no_loop_runs(tmp_path: Path) -> None:
    session = SQLAlchemySession.from_url("s", url=f"sqlite+aiosqlite:///{tmp_path}/s.db", create_tables=True)
    assert isinstance(session.engine, AsyncEngine)
    asyncio.run(session.add_items([message("a")]))
    assert texts(asyncio.run(session.get_items())) == ["a"]
    asyncio.run(session.aclose())


# --- subclasses ---


class Labelled(SQLAlchemySession):
    """A subclass as users write them, with an argument of its own."""

    def __init__(self, session_id: str, *, engine: AsyncEngine, label: str = "none", **kwargs: Any) -> None:
        super().__init__(session_id, engine=engine, create_tables=True, **kwargs)
        self.label = label


@in_event_loop
async def test_from_url_calls_the_constructor_of_a_subclass(
    postgres_url: str, tables: dict[str, str]
) -> None:
    async with Labelled.from_url("s", url=postgres_url, label="mine", **tables) as session:
        assert session.label == "mine"
        await session.add_items([message("a")])  # into tables that the constructor asked for
        assert texts(await session.get_items()) == ["a"]
    async with Labelled.from_url("s", url=postgres_url, **tables) as again:
        assert (again.label, texts(await again.get_items())) == ("none", ["a"])


@in_event_loop
async def test_a_constructor_that_fails_leaves_no_engine_behind(postgres_url: str) -> None:
    from recollect.sql.sqlalchemy import registry as shared

    before = dict(shared._shared)
    with pytest.raises(TypeError, match="no_such_option"):
        SQLAlchemySession.from_url("s", url=f"{postgres_url}?application_name=mine", no_such_option=1)
    assert shared._shared == before


# --- characters ---


@pytest.fixture
def latin1_url(postgres_url: str) -> Iterator[str]:
    """A database whose encoding has no Chinese."""
    name = f"latin1_{os.getpid()}"
    sql(postgres_url, f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    yield postgres_url.rpartition("/")[0] + f"/{name}"
    sql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
@pytest.mark.parametrize("kind", [SQLAlchemySession, AdvancedSQLAlchemySession])
@in_event_loop
async def test_a_latin1_database_takes_every_character(
    latin1_url: str, driver: str, kind: type[SQLAlchemySession]
) -> None:
    items = [message(word) for word in WORDS]
    async with kind.from_url("s", url=by(driver, latin1_url), create_tables=True) as session:
        await session.add_items(items)
        assert await session.get_items() == items
        await session.transform_items(lambda old: [*old[:1], message("改"), *old[2:]])
        await session.revise_items(lambda old: [message("又"), *old[1:]])
        assert await session.set_note("n", {"about": "摘要"}, 0)
        assert (await session.get_items())[:2] == [message("又"), message("改")]
        assert await session.pop_item() == message("plain")
        note = await session.get_note("n")
        assert note is not None
        assert note.data == {"about": "摘要"}


@in_event_loop
async def test_turns_are_found_by_characters_that_are_escaped(
    postgres_url: str, tables: dict[str, str]
) -> None:
    kept = AdvancedSQLAlchemySession.from_url("s", url=postgres_url, create_tables=True, **tables)
    async with kept as session:
        await session.add_items([message("我住在里斯本"), message("other")])
        assert len(await session.find_turns_by_content("里斯本")) == 1


@in_event_loop
async def test_a_latin1_database_refuses_what_is_not_escaped(latin1_url: str) -> None:
    made = SQLAlchemySession.from_url("s", url=latin1_url, create_tables=True, ensure_ascii=False)
    async with made as session:
        with pytest.raises(StorageError):
            await session.add_items([message("中文")])
        assert await session.get_items() == []


@pytest.mark.parametrize(("ensure_ascii", "stored"), [(True, "\\u4e2d"), (False, "中")])
@in_event_loop
async def test_characters_are_stored_as_asked_for(
    postgres_url: str, tables: dict[str, str], ensure_ascii: bool, stored: str
) -> None:
    made = SQLAlchemySession.from_url(
        "s", url=postgres_url, create_tables=True, ensure_ascii=ensure_ascii, **tables
    )
    async with made as session:
        await session.add_items([message("中")])
        ((text,),) = sql(postgres_url, f"SELECT message_data FROM {tables['messages_table']}")
        assert stored in text
        assert texts(await session.get_items()) == ["中"]


# --- memory ---


@pytest.mark.parametrize("url", ["sqlite+aiosqlite://", "sqlite+aiosqlite:///:memory:"])
def test_whatever_needs_sessions_that_others_open_refuses_memory(url: str) -> None:
    with pytest.raises(ValueError, match="file or a server"):
        SessionManager(url)
    with pytest.raises(ValueError, match="not :memory:"):
        OpenAISQLAlchemySessionStore(url)
