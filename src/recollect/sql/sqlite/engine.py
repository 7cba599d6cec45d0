"""One database file in one process: one writer that shares commits, a few readers.

Sessions are handles on an engine. Small reads run where they are called, because a hop to a thread
costs more than they do; what takes longer moves to a thread, with the rows read so far.
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
from .migrations import check_tables, is_migrated, migrate
from .read_only import is_outdated, stand_in, tables_of
from .readers import Readers
from .writer import Writer

T = TypeVar("T")

_READERS = 3
LINGER_SECONDS = 0.25


class FileEngine:
    """The engine of a database file. Made by `registry.acquire_engine`, one for each file and process."""

    def __init__(
        self,
        path: str,
        options: EngineOptions,
        before_waiting: Callable[[], None],
        try_retire: Callable[["FileEngine"], bool],
    ) -> None:
        self.path = path
        self.options = options
        self.handles = 0  # sessions that use it; the registry counts them
        self._prepared: set[Schema] = set()
        self._identity: tuple[int, int] | None = None
        self._stand_ins: dict[str, list[str]] = {}  # of a read-only file: tables that it may lack
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
        """See to it that the tables are there and have the right shape."""
        if schema in self._prepared:
            return
        # Whoever only reads a file that is ready must not wait for those who write to it.
        if not await run_on_waiting_thread(partial(self._is_ready, schema)):
            try:
                await self._writer.run(partial(migrate, schema))
            except (ReadOnlyError, NotADatabaseError):
                await run_on_waiting_thread(partial(self._prepare_reading, schema))
        self._prepared.add(schema)

    async def write(self, make_script: MakeScript[T]) -> T:
        """Run a script in a durable transaction, which it may share with others, and return its result."""
        return await self._writer.run(make_script)

    async def vacuum(self) -> None:
        """Write the file anew, so that nothing of what was deleted is left in it or in its log."""
        await asyncio.to_thread(self._vacuum)

    def _vacuum(self) -> None:
        self._writer.pause()  # nobody writes here meanwhile, and a fork waits
        try:
            with closing(connect_writer(self.path, self.options)) as connection:
                wait_for_lock(lambda: connection.execute("VACUUM"), self.options.busy_timeout)
                wait_for_lock(partial(_empty_log, connection), self.options.busy_timeout)
        except FAULTS as error:
            raise explain(error, self.path) from error
        finally:
            self._writer.resume()

    def need(self, needed: bool) -> bool:
        """Say whether any session uses the file, to close it soon if none does; tells whether it is open."""
        is_open = self._writer.is_running or self._fetcher.readers.is_used
        self._writer.need(needed, linger=is_open)
        return is_open

    def wake(self) -> None:
        """Let the writer look whether it is still needed. Never waits."""
        self._writer.wake()

    def is_replaced(self) -> bool:
        """Whether the path now leads to another file than the one that was opened, or to none."""
        return self._identity is not None and self._identity != _identity_of(self.path)

    def close(self) -> None:
        """Finish what is waiting and close everything."""
        self._writer.stop()
        self._fetcher.readers.empty()

    def before_fork(self) -> None:
        """Have no connection open while the process forks: SQLite's locks do not survive it."""
        self._writer.pause()
        self._fetcher.readers.pause()
        self._fetcher.readers.empty()

    def after_fork_in_parent(self) -> None:
        """Go on as before; connections are opened again when needed."""
        self._fetcher.readers.resume()
        self._writer.resume()

    def after_fork_in_child(self) -> None:
        """Start anew: threads and locks of the parent do not exist here."""
        self._writer.reset()
        self._start_reading()

    def _try_retire(self) -> bool:
        if not self._try_retire_engine(self):
            return False
        self._fetcher.readers.empty()
        return True

    def _writer_connection(self, last: sqlite3.Connection | None) -> sqlite3.Connection:
        """The connection to write on: the last one, unless the file was replaced under it."""
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
        """Whether the tables are there with all that belongs to them; if not, it is not told why."""
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
        """Make a file readable that cannot be written to: tables that it lacks are empty."""
        tables = tables_of(schema)
        with self._fetcher.connection() as connection:
            run_script(connection, check_tables(schema, must_exist=False))
            if is_outdated(connection, tables):
                raise ReadOnlyError(
                    f"{self.path} was written by an older version and cannot be brought up to date here:"
                    " open it once where it can be written to"
                )
        self._stand_ins |= tables
        self._fetcher.readers.empty()

    def _open_reader(self) -> sqlite3.Connection:
        connection = connect_reader(self.path)
        try:
            if self._stand_ins:
                stand_in(connection, self._stand_ins)
        except BaseException:
            connection.close()
            raise
        return connection


def _migrate_alone(connection: sqlite3.Connection, schema: Schema, busy_timeout: float) -> None:
    wait_for_lock(lambda: connection.execute("BEGIN IMMEDIATE"), busy_timeout)
    run_script(connection, migrate(schema))
    connection.execute("COMMIT")


def _empty_log(connection: sqlite3.Connection) -> None:
    """Move the log into the file and cut it off; while others read from it, it counts as locked."""
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
