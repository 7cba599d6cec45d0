"""The engine of one database file in one process: one writer that groups commits, and a few readers.

Sessions are handles on an engine.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import TypeVar

from ...errors import NotADatabaseError, ReadOnlyError, StorageError
from ..schema import Schema
from ..scripts import MakeScript
from .connection import (
    FAULTS,
    EngineOptions,
    connect_reader,
    connect_writer,
    explain,
    run_script,
    wait_for_lock,
)
from .fetcher import LONG_READS, Fetcher, run_on_waiting_thread
from .late_flush import WriterConnection
from .migrations import check_tables, create_stand_ins, is_migrated, is_outdated, migrate, tables_of
from .readers import Readers
from .writer import Writer

T = TypeVar("T")

_READERS = 3
LINGER_SECONDS = 0.25


class FileEngine:
    """The engine of a database file. `registry.acquire_engine` creates one for each file and process."""

    def __init__(
        self,
        path: str,
        options: EngineOptions,
        before_waiting: Callable[[], None],
        try_retire: Callable[["FileEngine"], bool],
    ) -> None:
        self.path = path
        self.options = options
        self.handles = 0  # sessions that use the engine, counted by the registry
        self._prepared: set[Schema] = set()
        self._identity: tuple[int, int] | None = None
        self._stand_ins: dict[str, list[str]] = {}  # tables that a read-only file may lack
        self._try_retire_engine = try_retire
        self._writer = Writer(
            path, options, self._writer_connection, before_waiting, self._try_retire, LINGER_SECONDS
        )
        self._start_reading()

    def _start_reading(self) -> None:
        readers = Readers(self._open_reader, _READERS, LONG_READS)
        self._fetcher = Fetcher(self.path, self.options, readers)
        self.fetch = self._fetcher.fetch

    async def prepare(self, schema: Schema) -> None:
        """Create or migrate the tables if needed. Raises `SchemaMismatchError` if tables do not fit."""
        if schema in self._prepared:
            return
        # A caller that only reads a migrated file must not wait for writers.
        if not await run_on_waiting_thread(partial(self._is_ready, schema)):
            try:
                await self._writer.run(partial(migrate, schema))
            except (ReadOnlyError, NotADatabaseError):
                await run_on_waiting_thread(partial(self._prepare_reading, schema))
        self._prepared.add(schema)

    async def write(self, make_script: MakeScript[T]) -> T:
        """Run a script in a durable transaction and return its result. Scripts may share the transaction."""
        return await self._writer.run(make_script)

    async def vacuum(self) -> None:
        """Rewrite the file and empty its log, so that no deleted data is left in them."""
        await asyncio.to_thread(self._vacuum)

    def _vacuum(self) -> None:
        self._writer.pause()  # no writes in this process meanwhile; a fork waits
        try:
            with closing(connect_writer(self.path, self.options)) as connection:
                wait_for_lock(lambda: connection.execute("VACUUM"), self.options.busy_timeout)
                wait_for_lock(partial(_empty_log, connection), self.options.busy_timeout)
        except FAULTS as error:
            raise explain(error, self.path) from error
        finally:
            self._writer.resume()

    def set_needed(self, needed: bool) -> bool:
        """Set whether any session uses the file: else it is closed soon. Returns whether it is open."""
        is_open = self._writer.is_running or self._fetcher.readers.is_used
        self._writer.set_needed(needed, linger=is_open)
        return is_open

    def wake(self) -> None:
        """Make the writer check whether it is still needed. Never waits."""
        self._writer.wake()

    def is_replaced(self) -> bool:
        """Whether the path no longer leads to the file that was opened."""
        return self._identity is not None and self._identity != _identity_of(self.path)

    def close(self) -> None:
        """Run the waiting scripts and close all connections."""
        self._writer.stop()
        self._fetcher.readers.empty()

    def before_fork(self) -> None:
        """Close all connections before a fork: SQLite's locks do not survive it."""
        self._writer.pause()
        self._fetcher.readers.pause()
        self._fetcher.readers.empty()

    def after_fork_in_parent(self) -> None:
        """Continue. Connections are opened again when needed."""
        self._fetcher.readers.resume()
        self._writer.resume()

    def after_fork_in_child(self) -> None:
        """Start without threads and locks: those of the parent do not exist in the child."""
        self._writer.reset()
        self._start_reading()

    def _try_retire(self) -> bool:
        if not self._try_retire_engine(self):
            return False
        self._fetcher.readers.empty()
        return True

    def _writer_connection(self, last: WriterConnection | None) -> WriterConnection:
        """The connection to write on: the last one, or a new one if the file was replaced."""
        if last is not None:
            if not self.is_replaced():
                return last
            last.close()
            self._fetcher.readers.empty()
        connection = connect_writer(self.path, self.options)
        try:
            for schema in self._prepared:
                _migrate_alone(connection, schema, self.options.busy_timeout)
        except BaseException:
            connection.close()
            raise
        self._identity = _identity_of(self.path)
        return connection

    def _is_ready(self, schema: Schema) -> bool:
        """Whether all steps of the schema have run in the file. `False` also if the file cannot be read."""
        identity = _identity_of(self.path)
        if identity is None or not os.path.isfile(self.path):
            return False
        try:
            with self._fetcher.connection() as connection:
                ready = run_script(connection, is_migrated(schema))
        except StorageError:
            return False
        if ready and self._identity is None:
            self._identity = identity
        return ready

    def _prepare_reading(self, schema: Schema) -> None:
        """Prepare a read-only file for reading: empty stand-ins replace the tables that it lacks."""
        tables = tables_of(schema)
        with self._fetcher.connection() as connection:
            run_script(connection, check_tables(schema, must_exist=False))
            if is_outdated(connection, tables):
                raise ReadOnlyError(
                    f"{self.path} was written by an older version and is read-only, so it cannot be migrated:"
                    " open it once where it is writable"
                )
        self._stand_ins |= tables
        self._fetcher.readers.empty()

    def _open_reader(self) -> sqlite3.Connection:
        connection = connect_reader(self.path)
        try:
            if self._stand_ins:
                create_stand_ins(connection, self._stand_ins)
        except BaseException:
            connection.close()
            raise
        return connection


def _migrate_alone(connection: sqlite3.Connection, schema: Schema, busy_timeout: float) -> None:
    wait_for_lock(lambda: connection.execute("BEGIN IMMEDIATE"), busy_timeout)
    run_script(connection, migrate(schema))
    connection.execute("COMMIT")


def _empty_log(connection: sqlite3.Connection) -> None:
    """Move the log into the file and truncate it. Raises a busy error while others read from the log."""
    ((is_busy_now, *_),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    if is_busy_now:
        error = sqlite3.OperationalError("others read from the log")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise error


def _identity_of(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
