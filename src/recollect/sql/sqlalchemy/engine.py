"""The engine that runs scripts and queries on the connections of a database server."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, TypeVar

from ...cancellation import finish_despite_cancellation
from ...errors import ConnectionLostError, TransactionConflictError
from ..garbage import pause_garbage_collection
from ..schema import Schema
from ..scripts import Decode, MakeScript, Row, Script, Statement
from ..sqlite.migrations import check_version as check_file_version
from ..sqlite.migrations import migrate as migrate_sqlite
from .connections import Connections, RunStatement
from .metadata import create_missing_indexes, create_missing_tables, tables_with_indexes
from .notifications import listen
from .revisions import check_server_version

T = TypeVar("T")

_LONG_READ = 2000  # rows; decoding more would block the event loop for some milliseconds
_LONG_TEXT = 400_000  # characters or bytes; the same
_LONGEST_PAUSE = "30s"  # between two statements of a transaction; the server then ends it
_TRIES = 5  # of a transaction that the server rolled back because of a conflict with another

_VERSION_CHECKS = {"sqlite": check_file_version, "postgresql": check_server_version}


class SQLAlchemyEngine:
    """Runs scripts and queries on the connections of the running event loop."""

    def __init__(self, here: Callable[[], Connections], create_tables: bool) -> None:
        self.here = here
        """Returns the connections of the running event loop."""
        self._creates_tables = create_tables

    async def prepare(self, schema: Schema) -> None:
        """Create the missing tables, if the engine was opened with `create_tables`."""
        if self._creates_tables:
            connections = self.here()
            if schema not in connections.state.prepared:
                await self._create_missing(connections, schema)

    async def _create_missing(self, connections: Connections, schema: Schema) -> None:
        async with connections.state.preparing.get():
            if schema not in connections.state.prepared:
                if connections.dialect == "sqlite":
                    await self._write(connections, migrate_sqlite(schema))
                else:
                    async with connections.acquire() as run:
                        await _check_version(connections, run)
                    await connections.change_schema(partial(create_missing_tables, schema))
                    for table in tables_with_indexes(schema):
                        await connections.change_schema(partial(create_missing_indexes, table))
                connections.state.prepared.add(schema)

    async def write(self, make_script: MakeScript[T]) -> T:
        """Run a script in a transaction and return its result."""
        connections = self.here()
        for attempt in range(1, _TRIES):
            try:
                return await self._write(connections, make_script())
            except TransactionConflictError:  # let the other transaction finish first
                await asyncio.sleep(random.uniform(0, 0.01 * attempt))
        return await self._write(connections, make_script())

    async def fetch(self, sql: str, parameters: Sequence[Any], decode: Decode[T]) -> T:
        """Run one query and return what `decode` makes of its rows."""
        connections = self.here()
        try:
            rows = await _finish_on_sqlite(connections, _run_alone(connections, sql, parameters))
        except ConnectionLostError as error:
            if isinstance(error.__cause__, TimeoutError):
                raise
            rows = await _run_alone(connections, sql, parameters)  # a read may be repeated
        if _is_long(rows):
            return await asyncio.to_thread(_decode_long, decode, rows)
        return decode(rows)

    def listen(
        self, channel: str, on_notice: Callable[[], None]
    ) -> AbstractAsyncContextManager[asyncio.Event]:
        """Call a function at each notification in a channel. The event is set when the connection is lost."""
        return listen(self.here(), channel, on_notice)

    async def _write(self, connections: Connections, script: Script[T]) -> T:
        statement = next(script)
        if statement.alone and connections.dialect == "postgresql":
            rows = await _run_alone(connections, statement.sql, statement.parameters)
            return _result_of(script, rows)
        return await _finish_on_sqlite(connections, _run_script(connections, script, statement))


async def _finish_on_sqlite(connections: Connections, call: Coroutine[Any, Any, T]) -> T:
    """Await a call. A call on SQLite is finished even if cancelled: its thread cannot be stopped."""
    return await (finish_despite_cancellation(call) if connections.dialect == "sqlite" else call)


async def _run_alone(connections: Connections, sql: str, parameters: Sequence[Any]) -> list[Row]:
    async with connections.acquire() as run:
        await _check_version(connections, run)
        return await run(sql, parameters)


async def _run_script(connections: Connections, script: Script[T], statement: Statement) -> T:
    async with connections.acquire() as run:
        await _check_version(connections, run)
        await run(_begin_on(connections.dialect))
        try:
            result = await _send_rows(run, script, statement)
        except Exception as error:
            if not isinstance(error, ConnectionLostError):
                await run("ROLLBACK")
            raise
        await run("COMMIT")
        return result


def _begin_on(dialect: str) -> str:
    """The statement that begins a transaction."""
    if dialect == "sqlite":  # a plain BEGIN starts a read transaction, which may fail to become a writing one
        return "BEGIN IMMEDIATE"
    if dialect == "postgresql":  # a process that is frozen in a transaction must not keep its locks
        return f"BEGIN; SET LOCAL idle_in_transaction_session_timeout = '{_LONGEST_PAUSE}'"
    return "BEGIN"


async def _check_version(connections: Connections, run: RunStatement) -> None:
    """Refuse tables of a newer version. Once: a process that runs goes on while an operator migrates.

    It takes no connection of its own: a call that takes a second one may find the engine closed.
    """
    if connections.state.is_version_checked:
        return
    make_check = _VERSION_CHECKS.get(connections.dialect)
    if make_check is not None:
        check = make_check()
        await _send_rows(run, check, next(check))
    connections.state.is_version_checked = True


async def _send_rows(run: RunStatement, script: Script[T], statement: Statement) -> T:
    try:
        while True:
            statement = script.send(await run(statement.sql, statement.parameters))
    except StopIteration as finished:
        result: T = finished.value
        return result


def _result_of(script: Script[T], rows: list[Row]) -> T:
    """The result of a script, whose last statement gave these rows."""
    try:
        script.send(rows)
    except StopIteration as finished:
        result: T = finished.value
        return result
    raise AssertionError("a statement marked `alone` is followed by another")


def _decode_long(decode: Decode[T], rows: list[Row]) -> T:
    with pause_garbage_collection():
        return decode(rows)


def _is_long(rows: list[Row]) -> bool:
    if len(rows) != 1:
        return len(rows) > _LONG_READ
    return any(isinstance(value, str | bytes) and len(value) > _LONG_TEXT for value in rows[0])
