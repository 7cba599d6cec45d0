"""Faults of a server: a clear error or a success, never half a batch or a hang, and the next call works."""

import asyncio
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy.pool import NullPool

from recollect import (
    ConnectionLostError,
    DatabaseBusyError,
    StorageError,
    TransientError,
    UnreachableError,
)
from recollect.sessions.sqlalchemy import SQLAlchemySession
from recollect.sql.database import open_database
from recollect.sql.scripts import Script, Statement
from recollect.sql.sqlalchemy import engine
from recollect.testing.contract import in_event_loop, message, texts
from recollect.testing.servers.postgres import PostgresServer

from ..sqlite.test_processes import wait_until
from .database import as_user, by, sql

SIZE = 3
HERE = "datname = current_database() AND pid <> pg_backend_pid()"
WAITING = f"SELECT pid FROM pg_stat_activity WHERE {HERE} AND wait_event_type = 'Lock'"
BOTH_DRIVERS = pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
ONE_CONNECTION = {"pool_size": 1, "max_overflow": 0}


def batch(number: int) -> list[Any]:
    return [message(f"{number}/{n}") for n in range(SIZE)]


def batches_of(found: list[str]) -> list[int]:
    """The numbers of the stored batches, after a check that each is whole."""
    numbers = [int(text.split("/")[0]) for text in found[::SIZE]]
    assert found == [f"{number}/{n}" for number in numbers for n in range(SIZE)], "every batch is whole"
    return numbers


async def waiting_for_a_lock(url: str) -> int:
    """The process of the server that waits for another, as soon as there is one."""
    while True:
        rows = sql(url, WAITING)
        if rows:
            return int(rows[0][0])
        await asyncio.sleep(0.01)


@contextmanager
def session_held(url: str, tables: dict[str, str]) -> Iterator[None]:
    """Another transaction holds the row of the session `s`."""
    with psycopg.connect(url) as other:
        other.execute(f"SELECT 1 FROM {tables['sessions_table']} WHERE session_id = 's' FOR UPDATE".encode())
        yield
        other.rollback()


# --- a server that goes away ---


class Load:
    """Tasks that add batches, each to a session of its own, and remember what was acknowledged."""

    def __init__(self, sessions: list[SQLAlchemySession]) -> None:
        self.acknowledged: dict[str, list[int]] = {session.session_id: [] for session in sessions}
        self.errors: list[StorageError] = []
        self.is_over = False
        self._tasks = [asyncio.create_task(self._write(session)) for session in sessions]

    async def _write(self, session: SQLAlchemySession) -> None:
        number = 0
        while not self.is_over:
            try:
                await asyncio.wait_for(session.add_items(batch(number)), 60)
                self.acknowledged[session.session_id].append(number)
            except StorageError as error:
                self.errors.append(error)
                await asyncio.sleep(0.01)
            number += 1

    async def goes_on(self) -> None:
        """Wait until every task has added something more, by itself."""
        before = {name: len(numbers) for name, numbers in self.acknowledged.items()}
        while any(len(self.acknowledged[name]) == count for name, count in before.items()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async def end(self) -> None:
        self.is_over = True
        await asyncio.gather(*self._tasks)


@pytest.mark.parametrize(("driver", "end"), [("asyncpg", "kill"), ("psycopg", "kill"), ("asyncpg", "stop")])
@in_event_loop
async def test_a_server_that_ends_in_the_middle_of_a_load(
    server: PostgresServer, tables: dict[str, str], driver: str, end: str
) -> None:
    url = by(driver, server.url)
    sessions = [SQLAlchemySession.from_url(f"s{n}", url=url, create_tables=True, **tables) for n in range(6)]
    load = Load(sessions)
    await load.goes_on()
    await asyncio.to_thread(getattr(server, end))
    while not load.errors:  # noqa: ASYNC110 - the tasks find out one by one
        await asyncio.sleep(0.01)
    await asyncio.to_thread(server.start)
    await load.goes_on()
    await load.end()
    assert {type(error) for error in load.errors} <= {ConnectionLostError, UnreachableError}
    for session in sessions:
        await session.add_items(batch(9999))
        acknowledged = [*load.acknowledged[session.session_id], 9999]
        stored = batches_of(texts(await session.get_items()))
        assert stored == sorted(set(stored)), "in order, and none twice"
        assert set(acknowledged) <= set(stored), "nothing acknowledged is lost"
        await session.aclose()


@BOTH_DRIVERS
@in_event_loop
async def test_a_server_that_was_restarted_unnoticed(
    server: PostgresServer, tables: dict[str, str], driver: str
) -> None:
    """Nobody was told that the connections in the pool are dead, the event loop included."""
    async with SQLAlchemySession.from_url(
        "s", url=by(driver, server.url), create_tables=True, **tables
    ) as session:
        await asyncio.gather(*(session.add_items([message("before")]) for _ in range(5)))
        server.stop()
        server.start()
        await session.add_items([message("after")])
        assert texts(await session.get_items()) == ["before"] * 5 + ["after"]


@in_event_loop
async def test_a_server_that_is_down_is_unreachable_for_every_call(
    server: PostgresServer, tables: dict[str, str]
) -> None:
    session = SQLAlchemySession.from_url("s", url=server.url, create_tables=True, **tables)
    await session.add_items([message("before")])
    server.stop()
    calls: list[Callable[[], Any]] = [
        session.get_items,
        session.pop_item,
        session.clear_session,
        lambda: session.get_items(limit=2),
        lambda: session.add_items([message("refused")]),
        lambda: session.add_batch([message("refused")], "b"),
        lambda: session.take_lease("owner", 1),
    ]
    for call in calls:
        with pytest.raises(UnreachableError, match="no connection can be made"):
            await call()
    server.start()
    assert texts(await session.get_items()) == ["before"]
    await session.aclose()


# --- a connection that is cut ---


@BOTH_DRIVERS
@in_event_loop
async def test_a_connection_that_is_cut_during_a_write(
    postgres_url: str, tables: dict[str, str], driver: str
) -> None:
    url = by(driver, postgres_url)
    async with SQLAlchemySession.from_url("s", url=url, create_tables=True, **tables) as session:
        await session.add_items([message("before")])
        for write in (lambda: session.add_items(batch(1)), session.pop_item, session.clear_session):
            with session_held(postgres_url, tables):
                call = asyncio.ensure_future(write())
                sql(postgres_url, "SELECT pg_terminate_backend(%s)", await waiting_for_a_lock(postgres_url))
                with pytest.raises(ConnectionLostError, match="connection was lost"):
                    await call
        await session.add_items([message("after")])
        assert texts(await session.get_items()) == ["before", "after"]


@pytest.mark.parametrize("pool", [{}, {"pool_pre_ping": True}, {"pool_recycle": 0}], ids=str)
@BOTH_DRIVERS
@in_event_loop
async def test_connections_that_are_cut_while_nobody_uses_them(
    postgres_url: str, tables: dict[str, str], driver: str, pool: dict[str, Any]
) -> None:
    async with SQLAlchemySession.from_url(
        "s", url=by(driver, postgres_url), create_tables=True, engine_kwargs=pool, **tables
    ) as session:
        await asyncio.gather(*(session.add_items([message("a")]) for _ in range(4)))
        sql(postgres_url, f"SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE {HERE}")
        await session.add_items([message("b")])
        assert texts(await session.get_items()) == ["a"] * 4 + ["b"]


@pytest.mark.parametrize(
    ("pool", "kept"),
    [({"pool_size": 1}, 1), ({"pool_size": 2, "max_overflow": 0}, 2), ({"poolclass": NullPool}, 0)],
    ids=["overflow", "full", "none"],
)
@BOTH_DRIVERS
@in_event_loop
async def test_a_pool_keeps_no_more_connections_than_it_may(
    postgres_url: str, tables: dict[str, str], driver: str, pool: dict[str, Any], kept: int
) -> None:
    name = f"pool-{driver}-{kept}"
    url = by(driver, postgres_url)
    async with SQLAlchemySession.from_url(
        "s", url=url, create_tables=True, engine_kwargs={**pool, **named(driver, name)}, **tables
    ) as session:
        await session.add_items([message("a")])
        for _ in range(3):
            found = await asyncio.gather(*(session.get_items() for _ in range(12)))
            assert [texts(items) for items in found] == [["a"]] * 12
        opened = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
        # The server takes a moment to end a connection.
        assert await asyncio.to_thread(wait_until, lambda: sql(postgres_url, opened, name) == [(kept,)], 10)


def named(driver: str, name: str) -> dict[str, Any]:
    """Options of an engine whose connections have a name."""
    settings = {"application_name": name}
    return {"connect_args": {"server_settings": settings} if driver == "asyncpg" else settings}


# --- too much, too slow ---


@BOTH_DRIVERS
@in_event_loop
async def test_a_pool_that_is_exhausted_is_busy(
    postgres_url: str, tables: dict[str, str], driver: str
) -> None:
    options = {**ONE_CONNECTION, "pool_timeout": 0.1}
    async with SQLAlchemySession.from_url(
        "s", url=by(driver, postgres_url), create_tables=True, engine_kwargs=options, **tables
    ) as session:
        await session.add_items([message("before")])
        with session_held(postgres_url, tables):
            waiting = asyncio.create_task(session.add_items([message("waited")]))
            await waiting_for_a_lock(postgres_url)
            with pytest.raises(DatabaseBusyError, match="all connections of the pool are in use"):
                await session.get_items()
        await waiting
        assert texts(await session.get_items()) == ["before", "waited"]


@in_event_loop
async def test_a_server_without_a_connection_left_is_busy(postgres_url: str, role: str) -> None:
    sql(postgres_url, f"ALTER ROLE {role} CONNECTION LIMIT 0")
    async with SQLAlchemySession.from_url("s", url=as_user(role, postgres_url)) as session:
        with pytest.raises(DatabaseBusyError, match="accepts no more connections"):
            await session.get_items()


@in_event_loop
async def test_a_server_that_hangs(server: PostgresServer, tables: dict[str, str]) -> None:
    """As when its machine is overloaded, or the network between drops everything."""
    options = {"connect_args": {"command_timeout": 2.0, "timeout": 2.0}}
    async with SQLAlchemySession.from_url(
        "s", url=server.url, create_tables=True, engine_kwargs=options, **tables
    ) as session:
        await session.add_items(batch(0))
        server.freeze()
        try:
            with pytest.raises(ConnectionLostError, match="did not answer in time"):
                await asyncio.wait_for(session.add_items(batch(1)), 15)
            with pytest.raises(UnreachableError, match="no connection can be made"):
                await asyncio.wait_for(session.get_items(), 15)
        finally:
            server.thaw()
        await session.add_items(batch(2))
        assert batches_of(texts(await session.get_items())) in ([0, 2], [0, 1, 2])


@BOTH_DRIVERS
@in_event_loop
async def test_a_call_that_takes_too_long_is_ended(
    postgres_url: str, tables: dict[str, str], driver: str
) -> None:
    options = {"connect_args": {"command_timeout": 2}}
    async with SQLAlchemySession.from_url(
        "s", url=by(driver, postgres_url), create_tables=True, engine_kwargs=options, **tables
    ) as session:
        await session.add_items(batch(0))
        with session_held(postgres_url, tables):
            for write in (lambda: session.add_items(batch(1)), session.pop_item):
                with pytest.raises(ConnectionLostError, match="did not answer in time"):
                    await asyncio.wait_for(write(), 15)
        await session.add_items(batch(2))
        assert batches_of(texts(await session.get_items())) == [0, 2], "the server ended it, too"


@in_event_loop
async def test_there_are_bounds_by_default(postgres_url: str, tables: dict[str, str]) -> None:
    async with SQLAlchemySession.from_url("s", url=postgres_url, create_tables=True, **tables) as session:
        await session.get_items()
        engine = session._engine.here().engine  # type: ignore[attr-defined]
        connection = await engine.raw_connection()
        assert connection.driver_connection._config.command_timeout == 60
        connection.close()
    async with SQLAlchemySession.from_url("s", url=by("psycopg", postgres_url), **tables) as session:
        await session.get_items()
        assert session._engine.here()._longest_call == 60  # type: ignore[attr-defined]


# --- cancelling ---


@BOTH_DRIVERS
@in_event_loop
async def test_a_write_that_waits_for_a_lock_is_cancelled_soon_and_never_happens(
    postgres_url: str, tables: dict[str, str], driver: str
) -> None:
    async with SQLAlchemySession.from_url(
        "s", url=by(driver, postgres_url), create_tables=True, **tables
    ) as session:
        await session.add_items([message("before")])
        with session_held(postgres_url, tables):
            for write in (
                lambda: session.add_items([message("cancelled")]),
                session.pop_item,
                lambda: session.replace_items([]),
            ):
                call = asyncio.ensure_future(write())
                await waiting_for_a_lock(postgres_url)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call  # the lock is still held
                assert sql(postgres_url, WAITING) == [], "the server has ended it, too"
            assert texts(await session.get_items()) == ["before"]
        await session.add_items([message("after")])
        assert texts(await session.get_items()) == ["before", "after"]


@BOTH_DRIVERS
@in_event_loop
async def test_calls_that_are_cancelled_at_any_moment_leave_the_pool_whole(
    postgres_url: str, tables: dict[str, str], driver: str
) -> None:
    chance = random.Random(3)
    async with SQLAlchemySession.from_url(
        "s",
        url=by(driver, postgres_url),
        create_tables=True,
        engine_kwargs={"pool_size": 3, "max_overflow": 0},
        **tables,
    ) as session:
        await session.add_items([message(n) for n in range(300)])
        for _ in range(10):
            calls: list[Any] = [session.get_items, session.pop_item, lambda: session.get_items(limit=5)]
            tasks = [asyncio.ensure_future(chance.choice(calls)()) for _ in range(6)]
            await asyncio.sleep(chance.choice([0, 0.001, 0.003, 0.01]))
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        results = await asyncio.gather(*(session.get_items() for _ in range(20)))
        assert all(result == results[0] for result in results)
        pool = session._engine.here().engine.pool  # type: ignore[attr-defined]
        assert pool.checkedout() == 0


# --- transactions that meet ---


@in_event_loop
async def test_transactions_that_meet_are_made_again(postgres_url: str, tables: dict[str, str]) -> None:
    """On a server whose transactions are serialisable, the second of two writers is told to try again."""
    strict = {"server_settings": {"default_transaction_isolation": "serializable"}}
    async with SQLAlchemySession.from_url(
        "s", url=postgres_url, create_tables=True, engine_kwargs={"connect_args": strict}, **tables
    ) as session:
        await session.add_items([message("before")])
        with session_held(postgres_url, tables):
            waiting = asyncio.create_task(session.add_items([message("waited")]))
            await waiting_for_a_lock(postgres_url)
            held = f"UPDATE {tables['sessions_table']} SET updated_at = now() WHERE session_id = 's'"
            threading.Timer(0.05, lambda: sql(postgres_url, held)).start()
        await waiting
        assert texts(await session.get_items()) == ["before", "waited"]


@in_event_loop
async def test_what_waits_longer_than_the_server_allows_is_busy(
    postgres_url: str, tables: dict[str, str]
) -> None:
    impatient = {"server_settings": {"lock_timeout": "100"}}
    async with SQLAlchemySession.from_url(
        "s", url=postgres_url, create_tables=True, engine_kwargs={"connect_args": impatient}, **tables
    ) as session:
        await session.add_items([message("before")])
        with session_held(postgres_url, tables):
            for write in (lambda: session.add_items([message("refused")]), session.pop_item):
                with pytest.raises(DatabaseBusyError, match="another transaction held a lock for too long"):
                    await write()
        assert isinstance(DatabaseBusyError("x"), TransientError)
        assert texts(await session.get_items()) == ["before"]


@BOTH_DRIVERS
@in_event_loop
async def test_a_process_that_is_frozen_in_a_transaction_does_not_keep_its_locks(
    postgres_url: str, driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_LONGEST_PAUSE", "200ms")
    sql(postgres_url, f"CREATE TABLE frozen_{driver} AS SELECT 1 AS id")
    locked = f"SELECT id FROM frozen_{driver} FOR UPDATE"

    def script() -> Script[None]:
        yield Statement(locked)
        # Nothing else runs in this process until another has got the row.
        assert sql(postgres_url, locked) == [(1,)]
        yield Statement("SELECT 1")

    database = open_database(by(driver, postgres_url))
    with pytest.raises(ConnectionLostError):
        await database.engine.write(script)
    assert await database.engine.fetch("SELECT 1", (), list) == [(1,)], "the next call works"
    await database.aclose()
