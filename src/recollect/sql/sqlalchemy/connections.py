"""Connections from the pool of a SQLAlchemy engine. Statements go directly to their driver.

SQLAlchemy opens, pools and closes the connections. It does not run the statements: its layers take longer
than PostgreSQL itself, and it would prepare named statements, which PgBouncer loses.
"""

import asyncio
import re
import select
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import cached_property, lru_cache, partial
from typing import Any, Protocol, TypeAlias, TypeVar

from sqlalchemy.engine import URL, Connection
from sqlalchemy.exc import MissingGreenlet
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import AsyncAdaptedQueuePool, Pool, PoolProxiedConnection, StaticPool
from sqlalchemy.util import greenlet_spawn

from ...cancellation import finish_despite_cancellation
from ...errors import ConnectionLostError, StatementRefusedError
from ...event_loops import PerLoop
from ..schema import Schema
from ..scripts import Row
from .errors import explain, explain_connecting, explained
from .values import psycopg_loaders, to_asyncpg, to_psycopg

T = TypeVar("T")

_CLOSE_TIMEOUT = 5.0  # seconds for the server to end a cancelled statement
_PARAMETER = re.compile(r"\?(\d+)")


class RunStatement(Protocol):
    """Runs a statement on a connection and returns its rows."""

    def __call__(self, sql: str, parameters: Sequence[Any] = ()) -> Awaitable[list[Row]]:
        """Raises one of our errors if the database refuses the statement."""
        ...


class EngineState:
    """State that all users of an engine share: the prepared schemas, and locks."""

    def __init__(self) -> None:
        self.prepared: set[Schema] = set()
        self.is_version_checked = False
        self.preparing = PerLoop(asyncio.Lock)
        self.turn = PerLoop(asyncio.Lock)


_states: "weakref.WeakKeyDictionary[Any, EngineState]" = weakref.WeakKeyDictionary()


class Connections:
    """The connections of one engine, in autocommit mode: only a BEGIN statement starts a transaction."""

    def __init__(
        self,
        engine: AsyncEngine,
        state: EngineState,
        *,
        autocommits: bool = False,
        reuses_directly: bool = False,
        longest_call: float | None = None,
    ) -> None:
        """`reuses_directly`: the pool awaits nothing to give out an idle connection, or to get it back."""
        self.engine = engine
        self.dialect = engine.dialect.name
        self.state = state
        self._pooling = engine.sync_engine
        self._dialect: Any = engine.dialect
        self._execute = _EXECUTE.get(engine.dialect.driver, _by_cursor)
        self._sets_autocommit = not autocommits and engine.dialect.driver != "asyncpg"
        self._reuses_directly = reuses_directly
        # Takes left that need a greenlet, because one of them gets a place whose connection was closed.
        self._careful_takes = 0
        self._longest_call = longest_call

    @cached_property
    def where(self) -> str:
        """The name of the database in error messages."""
        return display_url(self.engine.url)

    def acquire(self) -> AbstractAsyncContextManager[RunStatement]:
        """A connection for the caller alone, as a function that runs statements on it."""
        return self._acquire_in_turn() if isinstance(self._pooling.pool, StaticPool) else self._acquire()

    @asynccontextmanager
    async def _acquire_in_turn(self) -> AsyncIterator[RunStatement]:
        """From a pool that has one connection for all callers."""
        async with self.state.turn.get(), self._acquire() as run:
            yield run

    @asynccontextmanager
    async def _acquire(self) -> AsyncIterator[RunStatement]:
        """The connection returns to the pool. After a cancellation or a lost connection it is closed instead.

        Closing it makes the server end the cancelled statement, unless the server does not answer.
        """
        pool = self._pooling.pool
        connection = await self._take()
        try:
            yield partial(self._run, connection.driver_connection)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, ConnectionLostError | asyncio.CancelledError):
                await finish_despite_cancellation(self._discard(connection))
            else:
                await self._give_back(connection, pool)
            raise
        await self._give_back(connection, pool)

    @asynccontextmanager
    async def detached(self) -> AsyncIterator[Any]:
        """A connection of the driver that does not count as one of the pool. It is closed after the block."""
        connection = await self._take()
        driver: Any = connection.driver_connection
        try:
            connection.detach()
            self._note_closed()
            yield driver
        finally:
            await finish_despite_cancellation(_close_driver(driver))

    async def change_schema(self, change: Callable[[Connection], None]) -> None:
        """Let SQLAlchemy change the schema, in a transaction."""
        engine = self.engine.execution_options(isolation_level="READ COMMITTED")

        async def attempt() -> None:
            with explained(self.where, explain_connecting):
                try:
                    async with engine.begin() as connection:
                        await connection.run_sync(change)
                except BaseException:
                    self._note_closed()  # SQLAlchemy may have given up all connections
                    raise

        try:
            await finish_despite_cancellation(attempt())
        except StatementRefusedError:
            # Another process, which does not know our lock, may have created the same tables: try once more.
            await finish_despite_cancellation(attempt())

    async def _take(self) -> PoolProxiedConnection:
        """A connection from the pool, skipping those that the server has closed meanwhile."""
        while True:
            with explained(self.where, explain_connecting):
                connection = self._take_idle() or await self._take_or_open()
            if not _is_stale(connection.driver_connection):
                return connection
            await self._discard(connection)

    def _take_idle(self) -> PoolProxiedConnection | None:
        """An idle connection of the pool, without a greenlet, which takes longer than all the rest."""
        pool = self._pooling.pool
        if self._careful_takes or not self._reuses_directly or not isinstance(pool, AsyncAdaptedQueuePool):
            return None
        try:
            return self._open() if pool.checkedin() else None
        except MissingGreenlet:  # its connection was closed after all
            self._note_closed()
            return None

    async def _take_or_open(self) -> PoolProxiedConnection:
        try:
            connection = await greenlet_spawn(self._open)
        except BaseException:
            self._note_closed()
            raise
        self._careful_takes = max(0, self._careful_takes - 1)
        return connection

    def _note_closed(self) -> None:
        """The pool has a place without a connection now. It gives out its places in turn."""
        pool = self._pooling.pool
        self._careful_takes = pool.size() if isinstance(pool, AsyncAdaptedQueuePool) else 0

    async def _discard(self, connection: PoolProxiedConnection) -> None:
        """Close a connection. Only then does the pool get its place back."""
        try:
            await _close(connection)
        finally:
            self._note_closed()

    def _open(self) -> PoolProxiedConnection:
        connection = self._pooling.raw_connection()
        try:
            self._set_up(connection)
        except BaseException:
            connection.invalidate()
            raise
        return connection

    def _set_up(self, connection: PoolProxiedConnection) -> None:
        if self._sets_autocommit:
            self._dialect.set_isolation_level(connection.dbapi_connection, "AUTOCOMMIT")
        if self._sets_autocommit and self.dialect == "sqlite":
            # Deleting a session must delete its rows, whatever other users of this engine have set.
            connection.info["foreign_keys"] = _pragma(connection, "foreign_keys")
            _pragma(connection, "foreign_keys=ON")

    async def _give_back(self, connection: PoolProxiedConnection, pool: Pool) -> None:
        if pool is not self._pooling.pool:  # the engine was disposed of meanwhile, and has another pool now
            await _close(connection)
        elif self._reuses_directly and isinstance(pool, AsyncAdaptedQueuePool) and _has_room(pool):
            self._put_back(connection)
        else:
            await greenlet_spawn(self._put_back, connection)

    def _put_back(self, connection: PoolProxiedConnection) -> None:
        if self._sets_autocommit and self.dialect == "sqlite":
            _pragma(connection, f"foreign_keys={connection.info['foreign_keys']}")
        if self._sets_autocommit:
            self._dialect.reset_isolation_level(connection.dbapi_connection)
        connection.close()

    async def _run(self, driver: Any, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Run a text of one or more statements. Returns the rows of the last one that has rows."""
        rows: list[Row] = []
        for statement, order in _render_statements(sql, self._dialect.paramstyle):
            values = parameters if order is None else [parameters[number] for number in order]
            with explained(self.where, explain):
                rows = await self._call(self._execute(driver, statement, values)) or rows
        return rows

    async def _call(self, call: Awaitable[list[Row]]) -> list[Row]:
        if self._longest_call is None:
            return await call
        async with asyncio.timeout(self._longest_call):
            return await call


def _has_room(pool: AsyncAdaptedQueuePool) -> bool:
    """Whether the pool keeps one more idle connection. Else it closes it, which it has to await."""
    return pool.checkedin() < pool.size()


def connections_on(engine: AsyncEngine) -> Connections:
    """The connections of an engine that the caller opened. All users of one engine share its state."""
    return Connections(engine, _states.setdefault(engine.sync_engine, EngineState()))


def display_url(url: URL) -> str:
    """A URL for error messages: without the password, and without options, which may hold one too."""
    return url.set(query={}).render_as_string(hide_password=True)


async def _close(connection: PoolProxiedConnection) -> None:
    """Close a connection. The pool opens another when it needs one."""
    try:
        async with asyncio.timeout(_CLOSE_TIMEOUT):
            await greenlet_spawn(connection.invalidate)
    except TimeoutError:  # the server does not answer; the connection was dropped
        return


async def _close_driver(driver: Any) -> None:
    """Close a connection that is not in a pool."""
    with suppress(TimeoutError):  # the server does not answer
        async with asyncio.timeout(_CLOSE_TIMEOUT):
            await driver.close()


def _pragma(connection: PoolProxiedConnection, pragma: str) -> Any:
    cursor = connection.cursor()
    try:
        cursor.execute(f"PRAGMA {pragma}")
        row = cursor.fetchone()
        return None if row is None else row[0]
    finally:
        cursor.close()


# --- drivers ---


async def _by_asyncpg(driver: Any, sql: str, parameters: Sequence[Any]) -> list[Row]:
    if parameters or sql.startswith("SELECT"):
        rows: list[Row] = await driver.fetch(sql, *to_asyncpg(parameters))
        return rows
    await driver.execute(sql)  # one round trip, also where statements are not prepared
    return []


async def _by_psycopg(driver: Any, sql: str, parameters: Sequence[Any]) -> list[Row]:
    cursor = driver.cursor(binary=True)
    for name, loader in psycopg_loaders().items():
        cursor.adapters.register_loader(name, loader)
    await cursor.execute(sql, to_psycopg(parameters))
    return await cursor.fetchall() if cursor.description else []


async def _by_aiosqlite(driver: Any, sql: str, parameters: Sequence[Any]) -> list[Row]:
    return list(await driver.execute_fetchall(sql, parameters))


async def _by_cursor(driver: Any, sql: str, parameters: Sequence[Any]) -> list[Row]:
    async with driver.cursor() as cursor:
        await cursor.execute(sql, parameters)
        return list(await cursor.fetchall()) if cursor.description else []


_Execute: TypeAlias = Callable[[Any, str, Sequence[Any]], Awaitable[list[Row]]]
_EXECUTE: dict[str, _Execute] = {"asyncpg": _by_asyncpg, "psycopg": _by_psycopg, "aiosqlite": _by_aiosqlite}


@lru_cache(maxsize=512)
def _render_statements(sql: str, paramstyle: str) -> list[tuple[str, list[int] | None]]:
    """The statements of a text in the parameter style of the driver, each with its order of parameters."""
    if paramstyle == "numeric_dollar":
        return [(_PARAMETER.sub(r"$\1", sql), None)]
    if paramstyle not in ("format", "pyformat"):
        return [(sql, None)]
    return [
        (_PARAMETER.sub("%s", part.replace("%", "%%")), [int(n) - 1 for n in _PARAMETER.findall(part)])
        for part in sql.split(";")
    ]


def _is_stale(driver: Any) -> bool:
    """Whether the server has closed a pooled connection. Found out without a round trip.

    Drivers notice it only when the event loop or a statement reads from the socket. An idle connection has
    nothing to read: if there is something, it is the server's message that it closes the connection.
    """
    closed = getattr(driver, "is_closed", None) or getattr(driver, "closed", False)
    if closed() if callable(closed) else closed is True:
        return True
    socket = _socket_of(driver)
    if socket is None:
        return False
    waiting = select.poll()
    waiting.register(socket, select.POLLIN)
    return bool(waiting.poll(0))


def _socket_of(driver: Any) -> Any:
    if hasattr(driver, "fileno"):  # psycopg
        return driver.fileno()
    transport = getattr(driver, "_transport", None)  # asyncpg
    return None if transport is None else transport.get_extra_info("socket")
