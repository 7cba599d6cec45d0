"""Every session of ours keeps the contract: backends and wrappers alike."""

from pathlib import Path

import pytest

from recollect import (
    AppendsOnce,
    Described,
    InMemorySession,
    Leasable,
    Positioned,
    RetryingSession,
    Rewritable,
    Session,
    SQLiteSession,
)
from recollect.testing import SessionContract

ALL_ABILITIES = (Rewritable, Positioned, AppendsOnce, Described, Leasable)


class TestInMemory(SessionContract):
    shared = False
    abilities = ALL_ABILITIES

    async def open_session(self, session_id: str) -> Session:
        return InMemorySession(session_id)


class TestSQLiteInMemory(SessionContract):
    shared = False
    abilities = ALL_ABILITIES

    async def open_session(self, session_id: str) -> Session:
        return SQLiteSession(session_id)


class TestSQLiteFile(SessionContract):
    abilities = ALL_ABILITIES

    @pytest.fixture(autouse=True)
    def database(self, tmp_path: Path) -> None:
        self.path = tmp_path / "sessions.db"

    async def open_session(self, session_id: str) -> Session:
        return SQLiteSession(session_id, self.path)


class TestSQLiteFileWithNormalDurability(TestSQLiteFile):
    async def open_session(self, session_id: str) -> Session:
        return SQLiteSession(session_id, self.path, "my_sessions", "my_messages", durability="normal")


class TestRetrying(TestSQLiteFile):
    abilities = ()

    async def open_session(self, session_id: str) -> Session:
        return RetryingSession(SQLiteSession(session_id, self.path), delay=0.01)
