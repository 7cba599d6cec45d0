"""Sessions on the MySQL or MariaDB of `RECOLLECT_TEST_MYSQL_URL`, whose driver must be installed."""

import os

import pytest

from recollect import Session
from recollect.sessions.sqlalchemy import SQLAlchemySession
from recollect.testing import SessionContract
from recollect.testing.contract import HOSTILE_IDS, in_event_loop, message, texts

from .database import new_tables
from .test_contract import ALL_ABILITIES

URL = os.environ["RECOLLECT_TEST_MYSQL_URL"]  # without it, conftest.py leaves this module out


class TestMySQL(SessionContract):
    """Ids of up to 255 characters: MySQL has no index on more."""

    abilities = ALL_ABILITIES

    @pytest.fixture(autouse=True)
    def database(self) -> None:
        self.tables = new_tables()

    async def open_session(self, session_id: str) -> Session:
        return SQLAlchemySession.from_url(session_id, url=URL, create_tables=True, **self.tables)

    @in_event_loop
    async def test_other_sessions_are_never_touched(self) -> None:
        sessions = [await self.open_session(session_id[:255]) for session_id in (*HOSTILE_IDS, "A")]
        for session in sessions:
            await session.add_items([message(session.session_id)])
        for session in sessions:
            assert texts(await session.get_items()) == [session.session_id]
            await session.aclose()  # type: ignore[attr-defined]
