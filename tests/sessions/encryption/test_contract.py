"""Encrypted sessions keep the contract, whatever stores their envelopes, and have its abilities."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import agents
import pytest

from recollect import (
    AppendsOnce,
    Described,
    InMemorySession,
    Leasable,
    Noted,
    PopsChecked,
    Positioned,
    RetryingSession,
    Rewritable,
    Session,
    SQLAlchemySession,
    SQLiteSession,
)
from recollect.sessions.advanced.sqlite import AdvancedSQLiteSession
from recollect.sessions.encryption import EncryptedSession
from recollect.sessions.redis import RedisSession
from recollect.testing import SessionContract

from ..postgres.database import by, new_tables, sql

ALL_ABILITIES = (Rewritable, PopsChecked, Positioned, AppendsOnce, Described, Noted, Leasable)


class Encrypted(SessionContract):
    """Says what is wrapped; the rest is the same for all."""

    abilities = ALL_ABILITIES
    cipher: Any = "fernet"

    def open_wrapped(self, session_id: str) -> Any:
        raise NotImplementedError

    async def open_session(self, session_id: str) -> Session:
        return EncryptedSession(session_id, self.open_wrapped(session_id), "secret", cipher=self.cipher)


class TestInMemory(Encrypted):
    shared = False

    def open_wrapped(self, session_id: str) -> Any:
        return InMemorySession(session_id)


@pytest.mark.proof
class TestInMemoryByTheFastCipher(TestInMemory):
    cipher = "aes-gcm"


class TestSQLiteInMemory(Encrypted):
    shared = False

    def open_wrapped(self, session_id: str) -> Any:
        return SQLiteSession(session_id)


class TestSQLiteFile(Encrypted):
    @pytest.fixture(autouse=True)
    def database(self, tmp_path: Path) -> None:
        self.path = tmp_path / "sessions.db"

    def open_wrapped(self, session_id: str) -> Any:
        return SQLiteSession(session_id, self.path)


@pytest.mark.proof
class TestSQLiteFileByTheFastCipher(TestSQLiteFile):
    cipher = "aes-gcm"


class TestAdvancedSQLite(TestSQLiteFile):
    def open_wrapped(self, session_id: str) -> Any:
        return AdvancedSQLiteSession(session_id=session_id, db_path=self.path)


@pytest.mark.proof
class TestRetriedSQLite(TestSQLiteFile):
    abilities = ()

    def open_wrapped(self, session_id: str) -> Any:
        return RetryingSession(SQLiteSession(session_id, self.path), delay=0.01)


class TestPostgres(Encrypted):
    @pytest.fixture(scope="class")
    @classmethod
    def made_tables(cls, postgres_url: str) -> dict[str, str]:
        tables = new_tables()

        async def make() -> None:
            made = SQLAlchemySession.from_url("s", url=postgres_url, create_tables=True, **tables)
            async with made:
                await made.get_items()

        asyncio.run(make())
        return tables

    @pytest.fixture(autouse=True)
    def database(self, postgres_url: str, made_tables: dict[str, str]) -> Iterator[None]:
        self.url = by("asyncpg", postgres_url)
        self.tables = made_tables
        yield
        sessions = made_tables["sessions_table"]
        sql(postgres_url, f'DELETE FROM "{sessions}"; DELETE FROM "recollect_{sessions}_leases"')

    def open_wrapped(self, session_id: str) -> Any:
        return SQLAlchemySession.from_url(session_id, url=self.url, **self.tables)


class TestRedis(Encrypted):
    cipher = "aes-gcm"

    @pytest.fixture(autouse=True)
    def server(self, redis_url: str, prefix: str) -> None:
        self.url = redis_url
        self.prefix = prefix

    def open_wrapped(self, session_id: str) -> Any:
        return RedisSession.from_url(session_id, url=self.url, key_prefix=self.prefix)


@pytest.mark.proof
class TestSessionOfTheSDK(Encrypted):
    """It has no abilities, and cannot look at an item and remove it in one step."""

    abilities = ()

    @pytest.fixture(autouse=True)
    def database(self, tmp_path: Path) -> None:
        self.path = tmp_path / "sessions.db"

    def open_wrapped(self, session_id: str) -> Any:
        return agents.SQLiteSession(session_id, self.path)
