"""Sessions on PostgreSQL and on SQLite through SQLAlchemy keep the contract."""

import itertools
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from recollect import AppendsOnce, Described, Leasable, Positioned, RetryingSession, Rewritable, Session
from recollect.sessions.sqlalchemy import SQLAlchemySession
from recollect.testing import SessionContract

ALL_ABILITIES = (Rewritable, Positioned, AppendsOnce, Described, Leasable)
_numbers = itertools.count()


class TestPostgres(SessionContract):
    """Each test has tables of its own, which is also how the tables are made again and again."""

    abilities = ALL_ABILITIES
    driver = "asyncpg"

    @pytest.fixture(autouse=True)
    def database(self, postgres_url: str) -> None:
        number = next(_numbers)
        self.tables = {"sessions_table": f"sessions_{number}", "messages_table": f"messages_{number}"}
        self.url = postgres_url.replace("postgresql://", f"postgresql+{self.driver}://")

    async def open_session(self, session_id: str) -> Session:
        return SQLAlchemySession.from_url(session_id, url=self.url, create_tables=True, **self.tables)


class TestPostgresByPsycopg(TestPostgres):
    driver = "psycopg"


class TestEngineThatIsPassedIn(TestPostgres):
    async def open_session(self, session_id: str) -> Session:
        # Pools keep connections for one event loop only; without one an engine serves them all.
        engine = create_async_engine(self.url, poolclass=NullPool)
        return SQLAlchemySession(session_id, engine=engine, create_tables=True, **self.tables)


class TestSQLiteBySQLAlchemy(SessionContract):
    abilities = ALL_ABILITIES

    @pytest.fixture(autouse=True)
    def database(self, tmp_path: Path) -> None:
        self.url = f"sqlite+aiosqlite:///{tmp_path}/sessions.db"

    async def open_session(self, session_id: str) -> Session:
        return SQLAlchemySession.from_url(session_id, url=self.url, create_tables=True)


class TestRetryingPostgres(TestPostgres):
    abilities = ()

    async def open_session(self, session_id: str) -> Session:
        return RetryingSession(await super().open_session(session_id), delay=0.01)
