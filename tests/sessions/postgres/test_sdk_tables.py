"""One database, two libraries: what the Agents SDK wrote is read here and goes on, and the reverse."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents.extensions.memory import EncryptedSession
from agents.extensions.memory import SQLAlchemySession as TheirSession
from sqlalchemy.ext.asyncio import create_async_engine

from recollect import MissingTablesError, SessionMetadata
from recollect.sessions.sqlalchemy import SQLAlchemySession
from recollect.testing.contract import ODD_ITEMS, in_event_loop, message, texts

from .database import by, new_tables, sql


@pytest.fixture(params=["postgresql", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite+aiosqlite:///{tmp_path}/sessions.db"
    return by("asyncpg", request.getfixturevalue("postgres_url"))


@in_event_loop
async def test_sessions_of_the_sdk_are_read_and_go_on(url: str, tables: dict[str, str]) -> None:
    """Its tables are enough for the contract: ours beside them are not needed."""
    engine = create_async_engine(url)
    theirs: Any = TheirSession("s", engine=engine, create_tables=True, **tables)
    await theirs.add_items(ODD_ITEMS)
    async with SQLAlchemySession.from_url("s", url=url, **tables) as ours:
        assert await ours.get_items() == ODD_ITEMS
        await ours.add_items([message("from us")])
        assert await theirs.get_items() == [*ODD_ITEMS, message("from us")]
        assert await ours.pop_item() == message("from us")
        await theirs.add_items([message("from them"), message("too")])
        assert texts(await ours.get_items(2)) == ["from them", "too"]
        assert await theirs.pop_item() == message("too")
        await ours.replace_items([message("rewritten")])
        assert await theirs.get_items() == [message("rewritten")]
        await ours.clear_session()
        assert await theirs.get_items() == []
    await engine.dispose()


@in_event_loop
async def test_sessions_of_ours_are_read_by_the_sdk(url: str, tables: dict[str, str]) -> None:
    async with SQLAlchemySession.from_url("s", url=url, create_tables=True, **tables) as ours:
        await ours.add_items(ODD_ITEMS)
    engine = create_async_engine(url)
    theirs: Any = TheirSession("s", engine=engine, create_tables=True, **tables)
    assert await theirs.get_items() == ODD_ITEMS
    await theirs.add_items([message("from them")])
    async with SQLAlchemySession("s", engine=engine, **tables) as ours:
        assert await ours.get_items(limit=1) == [message("from them")]
    await theirs.clear_session()
    async with SQLAlchemySession("s", engine=engine, **tables) as ours:
        assert await ours.get_items() == []
    await engine.dispose()


@in_event_loop
async def test_both_write_one_session_at_once(url: str, tables: dict[str, str]) -> None:
    engine = create_async_engine(url)
    theirs = TheirSession("s", engine=engine, create_tables=True, **tables)
    ours = SQLAlchemySession.from_url("s", url=url, create_tables=True, **tables)
    await theirs.get_items()

    async def write(session: Any, name: str) -> None:
        for n in range(10):
            await session.add_items([message(f"{name} {n}")])

    await asyncio.gather(write(theirs, "they"), write(ours, "we"))
    found = texts(await ours.get_items())
    for name in ("they", "we"):
        assert [text for text in found if text.startswith(name)] == [f"{name} {n}" for n in range(10)]
    await ours.aclose()
    await engine.dispose()


@in_event_loop
async def test_tables_may_be_made_while_the_sdk_makes_them(postgres_url: str) -> None:
    engine = create_async_engine(by("asyncpg", postgres_url))
    for _ in range(3):
        tables = new_tables()
        theirs = TheirSession("s", engine=engine, create_tables=True, **tables)
        async with SQLAlchemySession.from_url("s", url=postgres_url, create_tables=True, **tables) as ours:
            _, found = await asyncio.gather(theirs.get_items(), ours.get_items(), return_exceptions=True)
            assert found == [], "they may lose the race, we may not"
    await engine.dispose()


@in_event_loop
async def test_what_needs_tables_of_ours_says_so(url: str, tables: dict[str, str]) -> None:
    engine = create_async_engine(url)
    await TheirSession("s", engine=engine, create_tables=True, **tables).get_items()
    async with SQLAlchemySession("s", engine=engine, **tables) as ours:
        with pytest.raises(MissingTablesError, match="recollect migrate"):
            await ours.set_metadata(SessionMetadata(title="a title"))
        assert await ours.get_items() == []
    async with SQLAlchemySession("s", engine=engine, create_tables=True, **tables) as ours:
        await ours.set_metadata(SessionMetadata(title="a title"))
        assert (await ours.get_metadata()).title == "a title"
    await engine.dispose()


@in_event_loop
async def test_tables_of_the_sdk_get_our_index_beside_its_own(postgres_url: str) -> None:
    tables = new_tables()
    messages = tables["messages_table"]
    engine = create_async_engine(by("asyncpg", postgres_url))
    await TheirSession("s", engine=engine, create_tables=True, **tables).get_items()
    async with SQLAlchemySession("s", engine=engine, create_tables=True, **tables) as ours:
        await ours.get_items()
    indexes = sql(postgres_url, "SELECT indexname FROM pg_indexes WHERE tablename = %s", messages)
    assert {name for (name,) in indexes} == {
        f"{messages}_pkey",
        f"idx_{messages}_session_time",
        f"recollect_{messages}_by_session",
    }
    await engine.dispose()


@in_event_loop
async def test_the_columns_are_those_of_the_sdk(postgres_url: str) -> None:
    """Alike but for the ids, which are larger here."""
    engine = create_async_engine(by("asyncpg", postgres_url))
    columns = (
        "SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name = %s"
    )
    theirs, ours = new_tables(), new_tables()
    await TheirSession("s", engine=engine, create_tables=True, **theirs).get_items()
    async with SQLAlchemySession("s", engine=engine, create_tables=True, **ours) as session:
        await session.get_items()
    for table in theirs:
        made_by_them = set(sql(postgres_url, columns, theirs[table]))
        made_by_us = set(sql(postgres_url, columns, ours[table]))
        different = {name for name, *_ in made_by_them ^ made_by_us}
        assert different <= {"id"}
    await engine.dispose()


@in_event_loop
async def test_works_inside_the_sdks_encrypted_session(url: str, tables: dict[str, str]) -> None:
    async with SQLAlchemySession.from_url("s", url=url, create_tables=True, **tables) as ours:
        wrapped: Any = EncryptedSession("s", ours, encryption_key="secret", ttl=600)
        await wrapped.add_items([message("a"), message("b")])
        assert texts(await wrapped.get_items()) == ["a", "b"]
        assert await wrapped.pop_item() == message("b")
        assert all("__enc__" in item for item in await ours.get_items())
