"""Every session of ours keeps the contract: backends and wrappers alike."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from recollect import (
    AppendsOnce,
    AsyncSQLiteSession,
    Described,
    InMemorySession,
    Leasable,
    Positioned,
    RetryingSession,
    Rewritable,
    Session,
    SQLiteSession,
)
from recollect.sessions.protocol import Noted, PopsChecked
from recollect.testing import SessionContract

ALL_ABILITIES = (Rewritable, PopsChecked, Positioned, AppendsOnce, Described, Noted, Leasable)


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


class TestAsyncSQLiteInMemory(SessionContract):
    shared = False
    abilities = ALL_ABILITIES

    async def open_session(self, session_id: str) -> Session:
        return AsyncSQLiteSession(session_id)


class TestSQLiteFile(SessionContract):
    abilities = ALL_ABILITIES
    is_renamed = False

    @pytest.fixture(autouse=True)
    def database(self, tmp_path: Path) -> None:
        self.path = tmp_path / "sessions.db"

    async def open_session(self, session_id: str) -> Session:
        return SQLiteSession(session_id, self.path)

    async def store_corrupt(self, session: Any) -> bool:
        table = "my_messages" if self.is_renamed else "agent_messages"
        with sqlite3.connect(self.path) as connection:
            connection.execute(
                f"INSERT INTO {table} (session_id, message_data) VALUES (?, 'no JSON')", (session.session_id,)
            )
        connection.close()
        return True


class TestAsyncSQLiteFile(TestSQLiteFile):
    async def open_session(self, session_id: str) -> Session:
        return AsyncSQLiteSession(session_id, self.path)


@pytest.mark.proof
class TestSQLiteFileWithNormalDurability(TestSQLiteFile):
    is_renamed = True

    async def open_session(self, session_id: str) -> Session:
        return SQLiteSession(session_id, self.path, "my_sessions", "my_messages", durability="normal")


class TestRetrying(TestSQLiteFile):
    abilities = ()

    async def open_session(self, session_id: str) -> Session:
        return RetryingSession(SQLiteSession(session_id, self.path), delay=0.01)
