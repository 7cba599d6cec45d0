"""Nothing is left on a connection that another may get next, as PgBouncer hands them out by transaction.

PgBouncer itself cannot be had from PyPI. With the settings that are used here, the whole contract has
passed through PgBouncer 1.18 in transaction mode, which knows nothing of prepared statements.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from recollect import SessionManager, SessionMetadata
from recollect.sessions.sqlalchemy import SQLAlchemySession
from recollect.testing.contract import in_event_loop, message, texts

from .database import by, new_tables

PREPARES_NOTHING: dict[str, dict[str, Any]] = {
    "asyncpg": {"statement_cache_size": 0},
    "psycopg": {"prepare_threshold": None},
}
LEFT_BEHIND = """
    SELECT 'prepared ' || name FROM pg_prepared_statements
    UNION ALL SELECT 'set ' || name FROM pg_settings WHERE source = 'session'
    UNION ALL SELECT 'lock ' || mode FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()
    UNION ALL SELECT 'table ' || relname FROM pg_class WHERE relpersistence = 't'
    UNION ALL SELECT 'listening ' || channel FROM pg_listening_channels() AS channel
    UNION ALL SELECT 'cursor ' || name FROM pg_cursors WHERE name <> ''
"""


async def use_everything(session: SQLAlchemySession) -> None:
    """Every ability of a session, often enough for drivers to prepare statements."""
    for n in range(8):
        await session.add_items([message(n), message(n)])
        await session.get_items()
        await session.get_items(limit=3)
        await session.pop_item()
        await session.add_batch([message("batch")], str(n))
        await session.set_metadata(SessionMetadata(title="title"))
        await session.get_metadata()
        await session.read_after(0, 2)
        await session.read_before(None, 2)
        await session.transform_items(lambda items: items[-4:])
        assert await session.take_lease("owner", 10)
        await session.drop_lease("owner")
    assert texts(await session.get_items(limit=1)) == ["batch"]
    await session.clear_session()


@asynccontextmanager
async def on_one_connection(url: str, driver: str, connect_args: dict[str, Any]) -> AsyncIterator[Any]:
    """A session whose pool has one connection, with tables that somebody else has made."""
    tables = new_tables()
    options = {"pool_size": 1, "max_overflow": 0, "connect_args": connect_args}
    async with SQLAlchemySession.from_url("s", url=url, create_tables=True, **tables) as other:
        await other.get_items()
    async with SQLAlchemySession.from_url(
        "s", url=by(driver, url), engine_kwargs=options, **tables
    ) as session:
        yield session


async def left_behind(session: SQLAlchemySession) -> list[str]:
    """What is there on the session's own connection."""

    def rows_to_text(rows: list[Any]) -> list[str]:
        return [row[0] for row in rows]

    return await session._engine.fetch(f"{LEFT_BEHIND} LIMIT ?1", (99,), rows_to_text)


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
@in_event_loop
async def test_nothing_is_left_on_a_connection(postgres_url: str, driver: str) -> None:
    async with on_one_connection(postgres_url, driver, PREPARES_NOTHING[driver]) as session:
        await use_everything(session)
        assert await left_behind(session) == []


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
@in_event_loop
async def test_but_for_prepared_statements_nothing_is_left_by_default(postgres_url: str, driver: str) -> None:
    async with on_one_connection(postgres_url, driver, {}) as session:
        await use_everything(session)
        left = await left_behind(session)
        assert len(left) > 5, "they are what makes it fast"
        assert all(each.startswith("prepared ") for each in left)


@in_event_loop
async def test_listing_and_cleaning_up_leave_nothing_either(postgres_url: str) -> None:
    connect_args = PREPARES_NOTHING["asyncpg"]
    async with on_one_connection(postgres_url, "asyncpg", connect_args) as session:
        tables = session._queries.tables
        options = {"pool_size": 1, "max_overflow": 0, "connect_args": connect_args}
        manager = SessionManager(
            by("asyncpg", postgres_url),
            engine_kwargs=options,
            sessions_table=tables.sessions,
            messages_table=tables.messages,
        )
        await session.add_items([message("a")])
        assert len((await manager.list_sessions()).sessions) == 1
        assert await manager.cleanup_old_sessions(days=1) == 0
        assert await left_behind(session) == []
        manager.close()
