"""Scripts on an async SQLAlchemy engine."""

import asyncio
import re
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import Any, TypeVar
from zlib import crc32

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from ...errors import ConnectionLostError
from ..sql.queries import Queries
from ..sql.scripts import Decode, MakeScript, Row, Script, Statement
from ..sql.tables import Tables
from ..sqlite.queries import queries_for as sqlite_queries_for
from ..sqlite.schema import migrate as migrate_sqlite
from .errors import explain, explain_connecting
from .queries import postgres_queries_for
from .schema import describe

T = TypeVar("T")

_LONG_READ = 2000  # rows, or characters by the hundred: decoding more would hold up the event loop
_PARAMETER = re.compile(r"\?(\d+)")


def queries_for(dialect: str, tables: Tables) -> Queries:
    """The statements in the dialect of a database."""
    return sqlite_queries_for(tables) if dialect == "sqlite" else postgres_queries_for(tables)


class SQLAlchemyEngine:
    """Runs scripts and queries on one async engine."""

    def __init__(self, engine: AsyncEngine, create_tables: bool) -> None:
        self._transactional = engine
        self._single = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._is_sqlite = engine.dialect.name == "sqlite"
        self._paramstyle = engine.dialect.paramstyle
        self._where = engine.url.render_as_string(hide_password=True)
        self._create_tables = create_tables
        self._prepared: set[Tables] = set()

    async def prepare(self, tables: Tables) -> None:
        """Make the tables, where that was asked for."""
        if self._create_tables and tables not in self._prepared:
            if self._is_sqlite:
                await self.write(partial(migrate_sqlite, tables))
            else:
                await _settled(self._make_tables(tables))
            self._prepared.add(tables)

    async def write(self, make_script: MakeScript[T]) -> T:
        """Run a script in a transaction and return its result, also if the caller is cancelled meanwhile."""
        return await _settled(self._write(make_script()))

    async def fetch(self, sql: str, parameters: Sequence[Any], decode: Decode[T]) -> T:
        """Run one query and return what `decode` makes of its rows."""
        statement = Statement(sql, parameters)
        try:
            rows = await self._run_alone(statement)
        except ConnectionLostError:
            rows = await self._run_alone(statement)  # a read may simply be made again
        if _is_long(rows):
            return await asyncio.to_thread(decode, rows)
        return decode(rows)

    async def _write(self, script: Script[T]) -> T:
        statement = next(script)
        if statement.alone:
            rows = await self._run_alone(statement)
            return _result_of(script, rows)
        async with self._transaction() as connection:
            return await self._run_script(connection, script, statement)

    async def _run_script(self, connection: AsyncConnection, script: Script[T], statement: Statement) -> T:
        try:
            while True:
                statement = script.send(await self._execute(connection, statement))
        except StopIteration as finished:
            result: T = finished.value
            return result

    async def _run_alone(self, statement: Statement) -> list[Row]:
        async with self._connected(self._single) as connection:
            return await self._execute(connection, statement)

    async def _execute(self, connection: AsyncConnection, statement: Statement) -> list[Row]:
        sql, order = _rendered(statement.sql, self._paramstyle)
        parameters = tuple(statement.parameters[n] for n in order) if order else tuple(statement.parameters)
        result = await connection.exec_driver_sql(sql, parameters)
        return list(result.fetchall()) if result.returns_rows else []

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[AsyncConnection]:
        if self._is_sqlite:
            # The driver would begin a transaction that reads first, and could then not be made to write.
            async with self._connected(self._single) as connection:
                await connection.exec_driver_sql("BEGIN IMMEDIATE")
                try:
                    yield connection
                except BaseException:
                    await connection.exec_driver_sql("ROLLBACK")
                    raise
                await connection.exec_driver_sql("COMMIT")
        else:
            async with self._connected(self._transactional) as connection, connection.begin():
                yield connection

    @asynccontextmanager
    async def _connected(self, engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
        connection = await self._connect(engine)
        try:
            yield connection
        except Exception as error:
            explained = explain(error, self._where)
            if explained is error:
                raise
            raise explained from error
        finally:
            await connection.close()

    async def _connect(self, engine: AsyncEngine) -> AsyncConnection:
        """A connection from the pool, and not one that the server has closed while it lay there."""
        while True:
            try:
                connection = await engine.connect()
                driver = (await connection.get_raw_connection()).driver_connection
            except Exception as error:
                explained = explain_connecting(error, self._where)
                if explained is error:
                    raise
                raise explained from error
            if not _is_closed(driver):
                return connection
            await connection.invalidate()
            await connection.close()

    async def _make_tables(self, tables: Tables) -> None:
        """Make what is missing; first writers that come at once wait for each other."""
        metadata = describe(tables)
        async with self._connected(self._transactional) as connection, connection.begin():
            if connection.dialect.name == "postgresql":
                key = crc32(f"recollect/{tables.sessions}/{tables.messages}".encode())
                await connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({key})")
            await connection.run_sync(metadata.create_all)


def _result_of(script: Script[T], rows: list[Row]) -> T:
    """The result of a script after its last statement."""
    try:
        script.send(rows)
    except StopIteration as finished:
        result: T = finished.value
        return result
    raise AssertionError("a statement that was to be alone is followed by another")


@lru_cache(maxsize=512)
def _rendered(sql: str, paramstyle: str) -> tuple[str, tuple[int, ...]]:
    """A statement as the driver wants it, and the order it wants the parameters in, if not as they are."""
    if paramstyle == "numeric_dollar":
        return _PARAMETER.sub(r"$\1", sql), ()
    if paramstyle in ("format", "pyformat"):
        order = tuple(int(number) - 1 for number in _PARAMETER.findall(sql))
        return _PARAMETER.sub("%s", sql.replace("%", "%%")), order
    return sql, ()


def _is_closed(driver: Any) -> bool:
    """Whether a connection is known to be closed, without asking the server."""
    if callable(is_closed := getattr(driver, "is_closed", None)):
        return bool(is_closed())
    return getattr(driver, "closed", False) is True


def _is_long(rows: list[Row]) -> bool:
    if len(rows) != 1:
        return len(rows) > _LONG_READ
    return any(isinstance(value, str) and len(value) > 100 * _LONG_READ for value in rows[0])


async def _settled(call: Coroutine[Any, Any, T]) -> T:
    """Run a call to its end even if the caller is cancelled, so that nothing changes after that."""
    task = asyncio.ensure_future(call)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        task.exception()  # marks it as seen: the caller hears of its cancellation instead
        raise asyncio.CancelledError
    return task.result()
