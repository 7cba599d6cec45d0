"""Advanced sessions keep the contract, on the main branch and on others."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect import (
    AdvancedSQLAlchemySession,
    AdvancedSQLiteSession,
    AppendsOnce,
    Described,
    Leasable,
    Noted,
    PopsChecked,
    Positioned,
    Rewritable,
    Session,
)
from recollect.testing import SessionContract

from ..postgres.database import by, new_tables, sql

ALL_ABILITIES = (Rewritable, Positioned, AppendsOnce, Described, Leasable, Noted, PopsChecked)


class TestInMemory(SessionContract):
    shared = False
    abilities = ALL_ABILITIES

    async def open_session(self, session_id: str) -> Session:
        return AdvancedSQLiteSession(session_id=session_id)


class TestFile(SessionContract):
    abilities = ALL_ABILITIES

    @pytest.fixture(autouse=True)
    def database(self, tmp_path: Path) -> None:
        self.path = tmp_path / "sessions.db"

    async def open_session(self, session_id: str) -> Session:
        return AdvancedSQLiteSession(session_id=session_id, db_path=self.path)


@pytest.mark.proof
class TestBySQLAlchemyOnSQLite(TestFile):
    async def open_session(self, session_id: str) -> Session:
        url = f"sqlite+aiosqlite:///{self.path}"
        return AdvancedSQLAlchemySession.from_url(session_id, url=url, create_tables=True)


class TestPostgres(SessionContract):
    abilities = ALL_ABILITIES
    driver = "asyncpg"

    @pytest.fixture(scope="class")
    @classmethod
    def made_tables(cls, postgres_url: str) -> dict[str, str]:
        tables = new_tables()

        async def make() -> None:
            options: dict[str, Any] = {"url": postgres_url, "create_tables": True, **tables}
            async with AdvancedSQLAlchemySession.from_url("s", **options) as made:
                await made.get_items()

        asyncio.run(make())
        return tables

    @pytest.fixture(autouse=True)
    def database(self, postgres_url: str, made_tables: dict[str, str]) -> Iterator[None]:
        self.url = by(self.driver, postgres_url)
        self.tables = made_tables
        yield
        sessions = made_tables["sessions_table"]
        sql(postgres_url, f'DELETE FROM "{sessions}"; DELETE FROM "recollect_{sessions}_leases"')

    async def open_session(self, session_id: str) -> Session:
        return AdvancedSQLAlchemySession.from_url(session_id, url=self.url, **self.tables)


class TestPostgresByPsycopg(TestPostgres):
    driver = "psycopg"
