"""The engines beneath: one for each URL, shared, and gone with its last session."""

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import StaticPool

from recollect.sessions.sqlalchemy import SQLAlchemySession
from recollect.sql.sqlalchemy import registry as shared
from recollect.testing.contract import close, in_event_loop, message, texts
from recollect.testing.servers.postgres import PostgresServer

from ..sqlite.test_processes import in_child, wait_until
from .database import by, count_connections

POOL = 10  # connections at most, by default


@pytest.fixture(scope="module")
def postgres_url() -> Iterator[str]:
    """A server of our own: on that of all tests, others may have connections."""
    with PostgresServer() as server:
        yield server.url


@pytest.fixture(params=["asyncpg", "psycopg"])
def url(postgres_url: str, request: pytest.FixtureRequest) -> Iterator[str]:
    before = set(shared._shared)
    yield by(request.param, postgres_url)
    assert set(shared._shared) <= before, "a test left an engine behind"


@pytest.fixture
def tables(postgres_url: str, tables: dict[str, str]) -> dict[str, str]:
    """Tables that are there."""

    async def make() -> None:
        async with SQLAlchemySession.from_url("s", url=postgres_url, create_tables=True, **tables) as session:
            await session.get_items()

    asyncio.run(make())
    return tables


@pytest.fixture
def nobody_connected(postgres_url: str) -> Callable[[], bool]:
    """Whether all connections end soon. Those that tests before this one left to be collected are gone."""
    gc.collect()
    assert wait_until(lambda: count_connections(postgres_url) == 0, 60), "a test left a connection behind"
    return lambda: wait_until(lambda: count_connections(postgres_url) == 0, 20)


# --- one for each URL ---


@pytest.mark.proof
@in_event_loop
async def test_a_thousand_sessions_of_one_url_share_one_pool(
    url: str, tables: dict[str, str], postgres_url: str, nobody_connected: Callable[[], bool]
) -> None:
    sessions = [SQLAlchemySession.from_url(f"s{n}", url=url, **tables) for n in range(1000)]
    await asyncio.gather(*(session.add_items([message("a")]) for session in sessions))
    assert 1 <= count_connections(postgres_url) <= POOL
    found = await asyncio.gather(*(session.get_items() for session in sessions))
    assert found == [[message("a")]] * 1000
    assert 1 <= count_connections(postgres_url) <= POOL
    await asyncio.gather(*(session.aclose() for session in sessions))
    assert nobody_connected()


@in_event_loop
async def test_the_engine_stays_until_its_last_session_is_closed(
    url: str, tables: dict[str, str], postgres_url: str, nobody_connected: Callable[[], bool]
) -> None:
    first, second = (SQLAlchemySession.from_url(name, url=url, **tables) for name in ("a", "b"))
    await first.add_items([message("a")])
    await second.add_items([message("b")])
    await first.aclose()
    await first.aclose()
    assert count_connections(postgres_url) >= 1
    assert texts(await second.get_items()) == ["b"]
    await second.close()
    assert nobody_connected()


@in_event_loop
async def test_other_options_are_another_engine(url: str, tables: dict[str, str], postgres_url: str) -> None:
    small = SQLAlchemySession.from_url(
        "s", url=url, engine_kwargs={"pool_size": 1, "max_overflow": 0}, **tables
    )
    large = SQLAlchemySession.from_url("s", url=url, engine_kwargs={"pool_size": 3}, **tables)
    making = SQLAlchemySession.from_url(
        "s", url=url, engine_kwargs={"pool_size": 3}, create_tables=True, **tables
    )
    await asyncio.gather(*(small.get_items() for _ in range(10)))
    assert count_connections(postgres_url) == 1
    await large.get_items()
    assert count_connections(postgres_url) == 2
    await making.get_items()
    assert count_connections(postgres_url) == 2, "making tables needs no engine of its own"
    for session in (small, large, making):
        await session.aclose()


# --- closed with its loop, its sessions, its process ---


def test_connections_end_with_their_event_loop(
    url: str, tables: dict[str, str], nobody_connected: Callable[[], bool]
) -> None:
    session = SQLAlchemySession.from_url("s", url=url, **tables)
    for n in range(3):
        asyncio.run(session.add_items([message(n)]))
        assert nobody_connected(), "though the session was not closed"
    assert texts(asyncio.run(session.get_items())) == ["0", "1", "2"]
    asyncio.run(session.aclose())


def test_the_last_session_closes_the_connections_of_other_loops_too(
    url: str, tables: dict[str, str], nobody_connected: Callable[[], bool]
) -> None:
    session = SQLAlchemySession.from_url("s", url=url, **tables)
    used, closed = threading.Event(), threading.Event()

    async def use_and_stay() -> None:
        await session.get_items()
        used.set()
        await asyncio.to_thread(closed.wait, 60)

    thread = threading.Thread(target=lambda: asyncio.run(use_and_stay()))
    thread.start()
    assert used.wait(60)
    asyncio.run(session.aclose())
    assert nobody_connected()
    closed.set()
    thread.join()


@in_event_loop
async def test_a_session_that_is_dropped_unclosed_lets_go_of_its_connections(
    url: str, tables: dict[str, str], postgres_url: str
) -> None:
    session = SQLAlchemySession.from_url("s", url=url, **tables)
    await session.add_items([message("a")])
    del session
    gc.collect()
    while count_connections(postgres_url):  # noqa: ASYNC110 - the server closes them
        await asyncio.sleep(0.01)


@in_event_loop
async def test_a_session_that_is_released_without_waiting_lets_go_soon(
    url: str, tables: dict[str, str], postgres_url: str
) -> None:
    session = SQLAlchemySession.from_url("s", url=url, **tables)
    await session.add_items([message("a")])
    session.release()
    while count_connections(postgres_url):  # noqa: ASYNC110 - the server closes them
        await asyncio.sleep(0.01)


def test_an_unclosed_session_does_not_keep_the_interpreter_from_ending(
    url: str, tables: dict[str, str], nobody_connected: Callable[[], bool]
) -> None:
    script = (
        "import asyncio, sys; from recollect.sessions.sqlalchemy import SQLAlchemySession\n"
        "url, sessions, messages = sys.argv[1:]\n"
        "session = SQLAlchemySession.from_url(\n"
        "    's', url=url, sessions_table=sessions, messages_table=messages)\n"
        "asyncio.run(session.add_items([{'role': 'user', 'content': 'kept'}]))\n"
        "print('done')"
    )
    command = [sys.executable, "-W", "always", "-c", script, url, *tables.values()]
    ended = subprocess.run(command, capture_output=True, timeout=20, check=True)
    assert (ended.stdout, ended.stderr) == (b"done\n", b"")
    assert nobody_connected()


@in_event_loop
async def test_closing_during_a_call_leaves_no_connection(
    url: str, tables: dict[str, str], nobody_connected: Callable[[], bool]
) -> None:
    session = SQLAlchemySession.from_url("s", url=url, **tables)
    calls = [asyncio.create_task(session.add_items([message(n)])) for n in range(30)]
    await asyncio.sleep(0.01)
    await session.aclose()
    await asyncio.gather(*calls)
    assert nobody_connected()
    async with SQLAlchemySession.from_url("s", url=url, **tables) as again:
        assert sorted(texts(await again.get_items()), key=int) == [str(n) for n in range(30)]


# --- engines that are passed in ---


@in_event_loop
async def test_an_engine_that_is_passed_in_is_left_alone(
    url: str, tables: dict[str, str], postgres_url: str
) -> None:
    engine = create_async_engine(url, pool_size=1, max_overflow=0)
    for n in range(3):
        async with SQLAlchemySession("s", engine=engine, **tables) as session:
            await session.add_items([message(n)])
    assert count_connections(postgres_url) == 1, "it is still in the pool"
    async with engine.connect() as connection:
        assert (await connection.exec_driver_sql("SELECT 1")).scalar() == 1
        assert connection.in_transaction(), "and begins transactions as before"
    await engine.dispose()


@in_event_loop
async def test_an_engine_that_is_passed_in_is_not_kept_alive(url: str, tables: dict[str, str]) -> None:
    async def use() -> weakref.ref[object]:
        engine = create_async_engine(url)
        async with SQLAlchemySession("s", engine=engine, **tables) as session:
            await session.get_items()
        await engine.dispose()
        return weakref.ref(engine.sync_engine)

    used = await use()
    gc.collect()
    assert used() is None


@in_event_loop
async def test_one_connection_for_all_is_used_in_turns() -> None:
    """What SQLAlchemy makes of a SQLite database in memory."""
    engine = create_async_engine("sqlite+aiosqlite://", poolclass=StaticPool)
    sessions = [SQLAlchemySession(f"s{n}", engine=engine, create_tables=True) for n in range(10)]
    await asyncio.gather(*(session.add_items([message(n)] * 3) for n, session in enumerate(sessions)))
    for n, session in enumerate(sessions):
        assert await session.get_items() == [message(n)] * 3
        await session.aclose()
    await engine.dispose()


@in_event_loop
async def test_foreign_keys_of_a_sqlite_engine_are_as_they_were(tmp_path: Path) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/s.db", pool_size=1, max_overflow=0)
    async with SQLAlchemySession("s", engine=engine, create_tables=True) as session:
        await session.add_items([message("a")])
        await session.clear_session()
    async with engine.connect() as connection:
        assert (await connection.exec_driver_sql("PRAGMA foreign_keys")).scalar() == 0
    await engine.dispose()


def test_a_database_in_memory_is_private_and_lives_as_long_as_its_session() -> None:
    """Also from one event loop to the next, as `Runner.run_sync` uses them."""
    first, second = (
        SQLAlchemySession.from_url(name, url="sqlite+aiosqlite:///:memory:", create_tables=True)
        for name in ("a", "a")
    )
    for n in range(3):
        asyncio.run(first.add_items([message(n)]))
    assert asyncio.run(second.get_items()) == []
    assert texts(asyncio.run(first.get_items())) == ["0", "1", "2"]
    asyncio.run(close(first))
    asyncio.run(close(second))


# --- fork ---


def test_parent_and_child_have_connections_of_their_own_after_fork(
    url: str, tables: dict[str, str], postgres_url: str
) -> None:
    session = SQLAlchemySession.from_url("s", url=url, **tables)

    def child() -> None:
        async def use() -> None:
            await session.add_items([message("child")])
            assert texts(await session.get_items()) == ["parent 1", "child"]
            assert count_connections(postgres_url) >= 2, "beside the parent's"

        asyncio.run(use())

    async def parent() -> None:
        await session.add_items([message("parent 1")])
        for expected in (["parent 1", "child"], ["parent 1", "child", "parent 2"]):
            if len(expected) == 2:
                assert await asyncio.to_thread(in_child, child) == 0
            else:
                await session.add_items([message("parent 2")])
            assert texts(await asyncio.wait_for(session.get_items(), 10)) == expected
        await session.aclose()

    asyncio.run(parent())


def test_a_child_that_ends_as_programs_do_leaves_the_parents_connections_alone(
    url: str, tables: dict[str, str]
) -> None:
    script = (
        "import asyncio, os, sys; from recollect.sessions.sqlalchemy import SQLAlchemySession\n"
        "url, sessions, messages = sys.argv[1:]\n"
        "session = SQLAlchemySession.from_url(\n"
        "    's', url=url, sessions_table=sessions, messages_table=messages)\n"
        "async def parent():\n"
        "    await session.add_items([{'content': 'before'}])\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        return False\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
        "    await asyncio.wait_for(session.add_items([{'content': 'after'}]), 10)\n"
        "    print(len(await asyncio.wait_for(session.get_items(), 10)))\n"
        "    await session.aclose()\n"
        "    return True\n"
        "loop = asyncio.new_event_loop()\n"
        "if loop.run_until_complete(parent()):\n"
        "    loop.close()\n"
        "else:\n"
        "    asyncio.run(session.add_items([{'content': 'child'}]))\n"
        "    sys.exit(0)\n"
    )
    command = [sys.executable, "-c", script, url, *tables.values()]
    ended = subprocess.run(command, capture_output=True, timeout=30, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"3\n", b"")
