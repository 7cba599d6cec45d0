"""One database file in one process: one writer that shares commits, a few readers.

Sessions are handles on an engine. Small reads run where they are called, because a hop to a thread
costs more than they do; what takes longer moves to a thread, with the rows read so far.
"""

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from ...errors import ReadOnlyError
from ..collector import collector_held_off
from ..sql.scripts import Decode, MakeScript, Row
from ..sql.tables import Tables
from .connection import (
    EngineOptions,
    connect,
    connect_writer,
    explain,
    is_busy,
    run_script,
    wait_for_lock,
)
from .readers import Readers
from .schema import check_tables, migrate
from .writer import Writer

T = TypeVar("T")

_READERS = 3
_READING_THREADS = 2
_INLINE_SECONDS = 0.002
_ROWS_PER_FETCH = 32
LINGER_SECONDS = 0.25


class _Reading:
    """Runs queries on a pool of connections: inline while they are quick, else on a thread."""

    def __init__(self, path: str, options: EngineOptions, readers: Readers) -> None:
        self._path = path
        self._busy_timeout = options.busy_timeout
        self.readers = readers

    async def fetch(self, sql: str, parameters: Sequence[Any], decode: Decode[T]) -> T:
        connection = self.readers.take_nowait()
        if connection is None:
            return await in_thread(partial(self._fetch_patiently, sql, parameters, decode))
        kept = True
        try:
            deadline = time.perf_counter() + _INLINE_SECONDS
            cursor = connection.execute(sql, parameters)
            rows, complete = _fetch_until(cursor, deadline)
            if complete and time.perf_counter() < deadline:
                return decode(rows)
            kept = False
        except sqlite3.Error as error:
            if not is_busy(error):
                raise explain(error, self._path) from error
        finally:
            if kept:
                self.readers.give_back(connection)
        if kept:
            return await in_thread(partial(self._fetch_patiently, sql, parameters, decode))
        return await self._fetch_rest(connection, cursor, rows, decode)

    async def _fetch_rest(
        self, connection: sqlite3.Connection, cursor: sqlite3.Cursor, rows: list[Row], decode: Decode[T]
    ) -> T:
        """Go on with a query on a thread, which then owns the connection, also if the caller is cancelled."""

        def finish() -> T:
            with collector_held_off():
                try:
                    rows.extend(cursor.fetchall())
                finally:
                    cursor.close()
                    self.readers.give_back(connection)
                return decode(rows)

        def give_back_unused(future: Future[T]) -> None:
            if future.cancelled():
                cursor.close()
                self.readers.give_back(connection)

        return await in_thread(finish, give_back_unused)

    def _fetch_patiently(self, sql: str, parameters: Sequence[Any], decode: Decode[T]) -> T:
        """The whole query on a thread, where waiting for a connection or a lock harms nobody."""
        connection = self.readers.take()
        try:
            with collector_held_off():
                rows = wait_for_lock(
                    lambda: connection.execute(sql, parameters).fetchall(), self._busy_timeout
                )
                return decode(rows)
        except sqlite3.Error as error:
            raise explain(error, self._path) from error
        finally:
            self.readers.give_back(connection)


def _fetch_until(cursor: sqlite3.Cursor, deadline: float) -> tuple[list[Row], bool]:
    """Rows until the deadline, and whether they are all."""
    rows: list[Row] = []
    while time.perf_counter() < deadline:
        some = cursor.fetchmany(_ROWS_PER_FETCH)
        rows += some
        if len(some) < _ROWS_PER_FETCH:
            return rows, True
    return rows, False


class FileEngine:
    """The engine of a database file. Made by `registry.open_engine`, one for each file and process."""

    def __init__(self, path: str, options: EngineOptions, try_retire: Callable[["FileEngine"], bool]) -> None:
        self.path = path
        self.options = options
        self.handles = 0  # sessions that use it; the registry counts them
        self._prepared: set[Tables] = set()
        self._identity: tuple[int, int] | None = None
        self._try_retire_engine = try_retire
        self._writer = Writer(path, options, self._writer_connection, self._try_retire, LINGER_SECONDS)
        self._start_reading()

    def _start_reading(self) -> None:
        readers = Readers(partial(connect, self.path), _READERS)
        self._reading = _Reading(self.path, self.options, readers)
        self.fetch = self._reading.fetch

    async def prepare(self, tables: Tables) -> None:
        """See to it that the tables are there and have the right shape."""
        if tables in self._prepared:
            return
        try:
            await self._writer.run(partial(migrate, tables))
        except ReadOnlyError:
            await in_thread(partial(self._check_readable, tables))
        self._prepared.add(tables)

    async def write(self, make_script: MakeScript[T]) -> T:
        """Run a script in a durable transaction, which it may share with others, and return its result."""
        return await self._writer.run(make_script)

    def need(self, needed: bool) -> None:
        """Say whether any session uses the file; if none does for a while, it is closed."""
        self._writer.need(needed)

    def is_replaced(self) -> bool:
        """Whether the path now leads to another file than the one that was opened, or to none."""
        return self._identity is not None and self._identity != _identity_of(self.path)

    def close(self) -> None:
        """Finish what is waiting and close everything."""
        self._writer.stop()
        self._reading.readers.empty()

    def before_fork(self) -> None:
        """Have no connection open while the process forks: SQLite's locks do not survive it."""
        self._writer.pause()
        self._reading.readers.pause()

    def after_fork_in_parent(self) -> None:
        """Go on as before; connections are opened again when needed."""
        self._reading.readers.resume()
        self._writer.resume()

    def after_fork_in_child(self) -> None:
        """Start anew: threads and locks of the parent do not exist here."""
        self._writer.reset()
        self._start_reading()

    def _try_retire(self) -> bool:
        if not self._try_retire_engine(self):
            return False
        self._reading.readers.empty()
        return True

    def _writer_connection(self, last: sqlite3.Connection | None) -> sqlite3.Connection:
        """The connection to write on: the last one, unless the file was replaced under it."""
        if last is not None:
            if not self.is_replaced():
                return last
            last.close()
            self._reading.readers.empty()
        connection = connect_writer(self.path, self.options)
        try:
            for tables in self._prepared:
                _migrate_alone(connection, tables, self.options.busy_timeout)
        except BaseException:
            connection.close()
            raise
        self._identity = _identity_of(self.path)
        return connection

    def _check_readable(self, tables: Tables) -> None:
        connection = self._reading.readers.take()
        try:
            run_script(connection, check_tables(tables))
        except sqlite3.Error as error:
            raise explain(error, self.path) from error
        finally:
            self._reading.readers.give_back(connection)


def _migrate_alone(connection: sqlite3.Connection, tables: Tables, busy_timeout: float) -> None:
    wait_for_lock(lambda: connection.execute("BEGIN IMMEDIATE"), busy_timeout)
    run_script(connection, migrate(tables))
    connection.execute("COMMIT")


def _identity_of(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class MemoryEngine:
    """A private database in memory: one connection, no thread, gone when it is closed."""

    def __init__(self, options: EngineOptions) -> None:
        self._readers = Readers(_connect_in_memory, 1)
        self._prepared: set[Tables] = set()
        self.fetch = _Reading(":memory:", options, self._readers).fetch

    async def prepare(self, tables: Tables) -> None:
        """Make the tables."""
        if tables not in self._prepared:
            await self.write(partial(migrate, tables))
            self._prepared.add(tables)

    async def write(self, make_script: MakeScript[T]) -> T:
        """Run a script in a transaction and return its result."""
        connection = self._readers.take_nowait()
        if connection is None:
            connection = await in_thread(self._readers.take)
        try:
            connection.execute("BEGIN")
            result = run_script(connection, make_script())
            connection.execute("COMMIT")
            return result
        except sqlite3.Error as error:
            raise explain(error, ":memory:") from error
        finally:
            if connection.in_transaction:
                connection.rollback()
            self._readers.give_back(connection)

    def close(self) -> None:
        """Forget everything."""
        self._readers.empty()


def _connect_in_memory() -> sqlite3.Connection:
    connection = connect(":memory:")
    connection.execute("PRAGMA foreign_keys=ON")
    return connection


# --- threads for long reads ---------------------------------------------------------------------------

_threads: ThreadPoolExecutor | None = None
_threads_lock = threading.Lock()


async def in_thread(work: Callable[[], T], done: Callable[[Future[T]], None] | None = None) -> T:
    """Run work on one of our threads: asyncio's own may all be taken by whoever else uses them."""
    global _threads
    with _threads_lock:
        if _threads is None:
            _threads = ThreadPoolExecutor(_READING_THREADS, thread_name_prefix="recollect-reader")
        future = _threads.submit(work)
    if done is not None:
        future.add_done_callback(done)
    return await asyncio.wrap_future(future)


def forget_threads() -> None:
    """After a fork, in the child: the threads are not there."""
    global _threads, _threads_lock
    _threads = None
    _threads_lock = threading.Lock()
