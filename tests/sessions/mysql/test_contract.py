"""Sessions on a real MariaDB."""

import signal
from collections.abc import Iterator

import pytest

from recollect import Session, SessionManager, UnreachableError
from recollect.sessions.sqlalchemy import SQLAlchemySession
from recollect.testing import SessionContract
from recollect.testing.contract import HOSTILE_IDS, in_event_loop, message, texts

from ..postgres.database import new_tables
from ..postgres.test_contract import ALL_ABILITIES
from .server import MariaDBServer

pytestmark = pytest.mark.proof


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDBServer]:
    with MariaDBServer() as server:
        yield server


class TestMariaDB(SessionContract):
    """Ids of up to 255 characters: MySQL has no index on more."""

    abilities = ALL_ABILITIES

    @pytest.fixture(autouse=True)
    def database(self, mariadb: MariaDBServer) -> None:
        self.tables = new_tables()
        self.url = mariadb.url

    async def open_session(self, session_id: str) -> Session:
        return SQLAlchemySession.from_url(session_id, url=self.url, create_tables=True, **self.tables)

    @in_event_loop
    async def test_other_sessions_are_never_touched(self) -> None:
        ids = {session_id[:255] for session_id in (*HOSTILE_IDS, "A", "A ", "a", "á")}
        sessions = [await self.open_session(session_id) for session_id in ids]
        for session in sessions:
            await session.add_items([message(session.session_id)])
        for session in sessions:
            assert texts(await session.get_items()) == [session.session_id]
            await session.aclose()  # type: ignore[attr-defined]


@in_event_loop
async def test_a_manager_opens_lists_and_cleans_up(mariadb: MariaDBServer) -> None:
    tables = new_tables()
    manager = SessionManager(mariadb.url, create_tables=True, **tables)
    for user in ("ada", "bob", "cy"):
        session = manager.get_session(user)
        assert manager.get_session(user) is session
        await session.add_items([message(f"I am {user}")])
    page = await manager.list_sessions(limit=2)
    rest = await manager.list_sessions(limit=2, cursor=page.next_cursor)
    found = [*page.sessions, *rest.sessions]
    assert sorted(info.session_id for info in found) == ["ada_default", "bob_default", "cy_default"]
    assert all(info.item_count == 1 and info.updated_at and info.updated_at.tzinfo for info in found)
    (of_bob,) = (await manager.list_sessions(user_id="bob")).sessions
    assert of_bob.session_id == "bob_default"
    assert await manager.cleanup_old_sessions(days=1) == 0
    async with (
        SQLAlchemySession.from_url("s", url=mariadb.url) as session,
        session.engine.begin() as connection,
    ):
        await connection.exec_driver_sql(
            f"UPDATE {tables['sessions_table']} SET updated_at = updated_at - INTERVAL 2 DAY"
            " WHERE session_id <> 'cy_default'"
        )
    assert await manager.cleanup_old_sessions(days=1) == 2
    (left,) = (await manager.list_sessions()).sessions
    assert left.session_id == "cy_default"
    manager.close()


@in_event_loop
async def test_what_was_acknowledged_survives_a_crash_of_the_server() -> None:
    with MariaDBServer() as server:
        session = SQLAlchemySession.from_url("s", url=server.url, create_tables=True)
        await session.add_items([message("before")])
        server.end(signal.SIGKILL)
        with pytest.raises(UnreachableError):
            await session.get_items()
        server.start()
        await session.add_items([message("after")])
        assert texts(await session.get_items()) == ["before", "after"]
        await session.aclose()
