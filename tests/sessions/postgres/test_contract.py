"""Sessions through SQLAlchemy keep the contract on PostgreSQL and SQLite."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from recollect import AppendsOnce, Described, Leasable, Positioned, RetryingSession, Rewritable, Session
from recollect.sessions.protocol import Noted, PopsChecked
from recollect.sessions.sqlalchemy import SQLAlchemySession
from recollect.testing import SessionContract

from .database import by, new_tables, sql
from .partitions import make_partitioned

ALL_ABILITIES = (Rewritable, PopsChecked, Positioned, AppendsOnce, Described, Noted, Leasable)


class OnSharedTables(SessionContract):
    """Tables that are made once for a class, and emptied after each test."""

    abilities = ALL_ABILITIES
    driver = "asyncpg"

    @pytest.fixture(scope="class")
    @classmethod
    def made_tables(cls, postgres_url: str) -> dict[str, str]:
        tables = new_tables()

        async def make() -> None:
            async with SQLAlchemySession.from_url(
                "s", url=postgres_url, create_tables=True, **tables
            ) as made:
                await made.get_items()

        asyncio.run(make())
        return tables

    @pytest.fixture(autouse=True)
    def database(self, postgres_url: str, made_tables: dict[str, str]) -> Iterator[None]:
        self.plain_url = postgres_url
        self.url = by(self.driver, postgres_url)
        self.tables = made_tables
        yield
        sessions = made_tables["sessions_table"]
        sql(postgres_url, f'DELETE FROM "{sessions}"; DELETE FROM "recollect_{sessions}_leases"')

    async def open_session(self, session_id: str) -> Session:
        return SQLAlchemySession.from_url(session_id, url=self.url, **self.tables)

    async def store_corrupt(self, session: Any) -> bool:
        columns = f'"{self.tables["messages_table"]}" (session_id, message_data)'
        insert = f"INSERT INTO {columns} VALUES ('{session.session_id}', 'no JSON')"
        await asyncio.to_thread(sql, self.plain_url, insert)
        return True


class TestPostgres(OnSharedTables):
    """As most will use it."""


class TestPostgresByPsycopg(OnSharedTables):
    driver = "psycopg"


@pytest.mark.proof
class TestHashPartitionedTables(OnSharedTables):
    """On the tables that the page on running at scale describes."""

    @pytest.fixture(scope="class")
    @classmethod
    def made_tables(cls, postgres_url: str) -> dict[str, str]:
        return make_partitioned(postgres_url)


@pytest.mark.proof
class TestEngineThatIsPassedIn(OnSharedTables):
    async def open_session(self, session_id: str) -> Session:
        # Pools keep connections for one event loop only; without one an engine serves them all.
        engine = create_async_engine(self.url, poolclass=NullPool)
        return SQLAlchemySession(session_id, engine=engine, **self.tables)


class TestPsycopgEngineThatIsPassedIn(TestEngineThatIsPassedIn):
    """Its connections begin transactions by themselves, unless they are told not to."""

    driver = "psycopg"


@pytest.mark.proof
class TestRetryingPostgres(OnSharedTables):
    abilities = ()

    async def open_session(self, session_id: str) -> Session:
        return RetryingSession(await super().open_session(session_id), delay=0.01)


@pytest.mark.proof
class TestSQLiteBySQLAlchemy(SessionContract):
    abilities = ALL_ABILITIES

    @pytest.fixture(autouse=True)
    def database(self, tmp_path: Path) -> None:
        self.url = f"sqlite+aiosqlite:///{tmp_path}/sessions.db"

    async def open_session(self, session_id: str) -> Session:
        return SQLAlchemySession.from_url(session_id, url=self.url, create_tables=True)


@pytest.mark.proof
class TestSQLiteEngineThatIsPassedIn(TestSQLiteBySQLAlchemy):
    async def open_session(self, session_id: str) -> Session:
        engine = create_async_engine(self.url, poolclass=NullPool, connect_args={"timeout": 60})
        return SQLAlchemySession(session_id, engine=engine, create_tables=True)


class TestSQLiteInMemory(SessionContract):
    """Gone with its last session, so that two which are opened one after the other share nothing."""

    abilities = ALL_ABILITIES
    shared = False

    async def open_session(self, session_id: str) -> Session:
        return SQLAlchemySession.from_url(session_id, url="sqlite+aiosqlite:///:memory:", create_tables=True)
