"""The engine of one database file in one process: one writer that groups commits, and a few readers.

Sessions are handles on an engine.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Any, TypeVar

from ...errors import FileReplacedError, NotADatabaseError, ReadOnlyError, StorageError
from ..schema import Schema
from ..scripts import Decode, MakeScript
from .connection import (
    FAULTS,
    EngineOptions,
    ImmutableConnection,
    connect_file,
    connect_reader,
    connect_writer,
    explain,
    run_script,
    wait_for_lock,
)
from .fetcher import LONG_READS, Fetcher, run_on_waiting_thread
from .file_identity import check_unchanged, identity_of
from .log_guard import LogGuard
from .log_locks import Identity
from .migrations import check_tables, check_version, create_stand_ins, is_migrated, migrate, tables_of
from .readers import Readers
from .wal import truncate
from .writer import Writer

T = TypeVar("T")

_READERS = 3
LINGER_SECONDS = 0.25
# To empty the log, which holds up writers while it waits for readers. In between they go on.
_TRUNCATE_TIMEOUT = 0.2  # seconds
_TRUNCATE_TRIES = 10


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
        self._identity: Identity | None = None  # of the file, once it was opened
        self._guard = LogGuard(path)
        self._has_written = False
        self._stand_ins: dict[str, list[str]] = {}  # tables that a read-only file may lack
        self._try_retire_engine = try_retire
        self._writer = Writer(
            path, options, self._writer_connection, before_waiting, self._try_retire, LINGER_SECONDS
        )
        self._start_reading()

    def _start_reading(self) -> None:
        readers = Readers(self._open_reader, _READERS, LONG_READS)
        self._fetcher = Fetcher(self.path, self.options, readers)

    async def fetch(self, sql: str, parameters: Sequence[Any], decode: Decode[T]) -> T:
        """Run one query and return what `decode` makes of its rows."""
        self._check_file()
        return await self._fetcher.fetch(sql, parameters, decode)

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
        self._check_file()
        self._writer.pause()  # no writes in this process meanwhile; a fork waits
        try:
            with closing(connect_writer(self.path, self.options)) as connection:
                wait_for_lock(lambda: connection.execute("VACUUM"), self.options.busy_timeout)
                wait_for_lock(partial(_empty_log, connection), self.options.busy_timeout)
        except FAULTS as error:
            raise explain(error, self.path) from error
        finally:
            self._writer.resume()

    async def clear_log(self) -> bool:
        """Empty the log, so that no deleted data is left in it. `False` if others read from it for long."""
        return await asyncio.to_thread(self._clear_log)

    def _clear_log(self) -> bool:
        self._check_file()
        try:
            with closing(connect_file(self.path)) as connection:
                return any(truncate(connection, _TRUNCATE_TIMEOUT) for _ in range(_TRUNCATE_TRIES))
        except FAULTS as error:
            raise explain(error, self.path) from error

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
        return self._identity is not None and self._identity != identity_of(self.path)

    def close(self) -> None:
        """Run the waiting scripts and close all connections."""
        self._writer.stop()
        self._stop_reading()

    def before_fork(self) -> None:
        """Close all connections before a fork: SQLite's locks do not survive it."""
        self._writer.pause()
        self._fetcher.readers.pause()
        self._stop_reading()

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
        self._stop_reading()
        return True

    def _stop_reading(self) -> None:
        self._fetcher.readers.empty()
        self._guard.release()

    def _check_file(self) -> None:
        """Raise `FileReplacedError` if the file was replaced or deleted. It is closed then for good."""
        if self._identity is None:
            return
        try:
            check_unchanged(self.path, self._identity)
        except FileReplacedError:
            self._stop_reading()
            raise

    def _writer_connection(self, last: sqlite3.Connection | None) -> sqlite3.Connection:
        """The connection to write on: the last one, or a new one if there is none."""
        try:
            self._check_file()
        except FileReplacedError:
            if last is not None:
                last.close()
            raise
        return last or self._open_writer()

    def _open_writer(self) -> sqlite3.Connection:
        connection = connect_writer(self.path, self.options)
        try:
            # The last connection to write may have been closed because the disk failed.
            if self._has_written or not self._guard.is_held:
                self._guard.secure(connection, self._note_identity(), self.options.busy_timeout)
            self._has_written = True
            for schema in self._prepared:  # a file that could only be read so far may lack tables
                _migrate_alone(connection, schema, self.options.busy_timeout)
        except BaseException:
            connection.close()
            raise
        return connection

    def _note_identity(self) -> Identity:
        if self._identity is None:
            self._identity = identity_of(self.path)
            if self._identity is None:
                raise FileReplacedError(f"{self.path} was deleted while it was opened")
        return self._identity

    def _is_ready(self, schema: Schema) -> bool:
        """Whether all steps of the schema have run in the file. `False` also if the file cannot be read."""
        if not os.path.isfile(self.path):
            return False
        try:
            with self._fetcher.connection() as connection:
                return run_script(connection, is_migrated(schema))
        except StorageError:
            return False

    def _prepare_reading(self, schema: Schema) -> None:
        """Prepare a read-only file for reading: empty stand-ins replace the tables that it lacks."""
        with self._fetcher.connection() as connection:
            run_script(connection, check_version())
            run_script(connection, check_tables(schema, must_exist=False))
        self._stand_ins |= tables_of(schema)
        self._fetcher.readers.empty()

    def _open_reader(self) -> sqlite3.Connection:
        self._check_file()
        connection = connect_reader(self.path)
        try:
            if not (self._guard.is_held or isinstance(connection, ImmutableConnection)):
                self._guard.flush(connection, self._note_identity())
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
