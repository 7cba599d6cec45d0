"""One database file in one process: one writer that shares commits, a few readers.

Sessions are handles on an engine. Small reads run where they are called, because a hop to a thread
costs more than they do; what takes longer moves to a thread, with the rows read so far.
"""

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, TypeVar, cast

from ...errors import NotADatabaseError, ReadOnlyError, StorageError
from ..garbage import collector_held_off
from ..schema import Schema
from ..scripts import Decode, LongQuery, MakeScript, Row
from .connection import (
    FAULTS,
    EngineOptions,
    connect,
    connect_reader,
    connect_writer,
    explain,
    is_busy,
    run_script,
    wait_for_lock,
)
from .migrations import check_tables, is_migrated, migrate
from .read_only import is_outdated, stand_in, tables_of
from .readers import Readers
from .writer import Writer

T = TypeVar("T")

_READERS = 3
LONG_READS = 4
"""Reads that take long and run at once: each has a thread, and a connection that no quick read needs."""
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
        # The time is looked at between rows, which is too late where all the work comes before the first.
        if isinstance(sql, LongQuery):
            return await in_long_thread(partial(self._fetch_long, sql, parameters, decode))
        connection = self._take_nowait()
        if connection is None:
            return await in_waiting_thread(partial(self._fetch_patiently, sql, parameters, decode))
        kept = True
        try:
            deadline = time.perf_counter() + _INLINE_SECONDS
            cursor = connection.execute(sql, parameters)
            rows, complete = _fetch_until(cursor, deadline)
            if complete and time.perf_counter() < deadline:
                return decode(rows)
            kept = False
        except FAULTS as error:
            if not is_busy(error):
                raise explain(error, self._path) from error
        finally:
            if kept:
                self.readers.give_back(connection)
        if kept:
            return await in_waiting_thread(partial(self._fetch_patiently, sql, parameters, decode))
        self.readers.lend(connection)
        return await self._fetch_rest(connection, cursor, rows, decode)

    async def _fetch_rest(
        self, connection: sqlite3.Connection, cursor: sqlite3.Cursor, rows: list[Row], decode: Decode[T]
    ) -> T:
        """Go on with a query on a thread, which then owns the connection, also if the caller is cancelled."""

        def finish() -> T:
            with collector_held_off():
                try:
                    rows.extend(cursor.fetchall())
                except FAULTS as error:
                    raise explain(error, self._path) from error
                finally:
                    cursor.close()
                    self.readers.give_back(connection)
                decoded = decode(rows)
                rows.clear()  # here, and not on the event loop, which freeing them would hold up
                return decoded

        def give_back_unused(future: Future[T]) -> None:
            if future.cancelled():
                cursor.close()
                self.readers.give_back(connection)

        return await in_working_thread(finish, give_back_unused)

    def _fetch_patiently(self, sql: str, parameters: Sequence[Any], decode: Decode[T]) -> T:
        """The whole query on a thread, where waiting for a connection or a lock harms nobody."""
        with self.patiently() as connection:
            return self._fetch_all(connection, sql, parameters, decode)

    def _fetch_long(self, sql: str, parameters: Sequence[Any], decode: Decode[T]) -> T:
        """The same, on a connection that no quick read needs."""
        with self.patiently(is_long=True) as connection:
            return self._fetch_all(connection, sql, parameters, decode)

    def _fetch_all(
        self, connection: sqlite3.Connection, sql: str, parameters: Sequence[Any], decode: Decode[T]
    ) -> T:
        with collector_held_off():
            rows = wait_for_lock(lambda: connection.execute(sql, parameters).fetchall(), self._busy_timeout)
            return decode(rows)

    @contextmanager
    def patiently(self, *, is_long: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection, after waiting for one if need be. Not for the event loop's thread."""
        try:
            connection = self.readers.take_long() if is_long else self.readers.take()
            try:
                yield connection
            finally:
                self.readers.give_back(connection)
        except FAULTS as error:
            raise explain(error, self._path) from error

    def _take_nowait(self) -> sqlite3.Connection | None:
        try:
            return self.readers.take_nowait()
        except FAULTS as error:
            raise explain(error, self._path) from error


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
        self._reading = _Reading(self.path, self.options, readers)
        self.fetch = self._reading.fetch

    async def prepare(self, schema: Schema) -> None:
        """See to it that the tables are there and have the right shape."""
        if schema in self._prepared:
            return
        # Whoever only reads a file that is ready must not wait for those who write to it.
        if not await in_waiting_thread(partial(self._is_ready, schema)):
            try:
                await self._writer.run(partial(migrate, schema))
            except (ReadOnlyError, NotADatabaseError):
                await in_waiting_thread(partial(self._prepare_reading, schema))
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
        is_open = self._writer.is_running or self._reading.readers.is_used
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
        self._reading.readers.empty()

    def before_fork(self) -> None:
        """Have no connection open while the process forks: SQLite's locks do not survive it."""
        self._writer.pause()
        self._reading.readers.pause()
        self._reading.readers.empty()

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
            with self._reading.patiently() as connection:
                ready = run_script(connection, is_migrated(schema))
        except StorageError:
            return False
        if ready and self._identity is None:
            self._identity = identity
        return ready

    def _prepare_reading(self, schema: Schema) -> None:
        """Make a file readable that cannot be written to: tables that it lacks are empty."""
        tables = tables_of(schema)
        with self._reading.patiently() as connection:
            run_script(connection, check_tables(schema, must_exist=False))
            if is_outdated(connection, tables):
                raise ReadOnlyError(
                    f"{self.path} was written by an older version and cannot be brought up to date here:"
                    " open it once where it can be written to"
                )
        self._stand_ins |= tables
        self._reading.readers.empty()

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


class MemoryEngine:
    """A private database in memory: one connection, no thread, gone when it is closed."""

    def __init__(self, options: EngineOptions) -> None:
        self._readers = Readers(_connect_in_memory, 1)
        self._prepared: set[Schema] = set()
        self._reading = _Reading(":memory:", options, self._readers)
        self.fetch = self._reading.fetch

    async def prepare(self, schema: Schema) -> None:
        """Make the tables."""
        if schema not in self._prepared:
            await self.write(partial(migrate, schema))
            self._prepared.add(schema)

    async def write(self, make_script: MakeScript[T]) -> T:
        """Run a script in a transaction and return its result."""
        connection = self._readers.take_nowait()
        if connection is None:
            return await self._write_in_turn(make_script)
        try:
            return _run_in_transaction(connection, make_script)
        finally:
            self._readers.give_back(connection)

    async def vacuum(self) -> None:
        """Leave nothing of what was deleted in memory."""
        await in_waiting_thread(self._vacuum)

    def _vacuum(self) -> None:
        with self._reading.patiently() as connection:
            connection.execute("VACUUM")

    async def _write_in_turn(self, make_script: MakeScript[T]) -> T:
        """Wait for the connection. A cancelled call did not happen, unless it had the connection by then."""
        turn = _Turn()
        writing = asyncio.ensure_future(in_waiting_thread(partial(self._write_patiently, turn, make_script)))
        try:
            return cast(T, await asyncio.shield(writing))
        except asyncio.CancelledError:
            if not turn.give_up():
                await asyncio.wait([writing])
            raise

    def _write_patiently(self, turn: "_Turn", make_script: MakeScript[T]) -> T | None:
        with self._reading.patiently() as connection:
            return _run_in_transaction(connection, make_script) if turn.begin() else None

    def close(self) -> None:
        """Forget everything."""
        self._readers.empty()

    def before_fork(self) -> None:
        """Have nobody use the connection while the process forks. It is memory, and is there in both."""
        self._readers.pause()

    def after_fork_in_parent(self) -> None:
        """Go on as before."""
        self._readers.resume()

    def after_fork_in_child(self) -> None:
        """Go on with a copy."""
        self._readers.restart()


class _Turn:
    """A write that waits its turn: whoever comes first, it begins or is given up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun = self._given_up = False

    def begin(self) -> bool:
        """Whether it may begin: nobody gave it up."""
        with self._lock:
            self._begun = not self._given_up
            return self._begun

    def give_up(self) -> bool:
        """Whether it was given up in time: it has not begun."""
        with self._lock:
            self._given_up = not self._begun
            return self._given_up


def _run_in_transaction(connection: sqlite3.Connection, make_script: MakeScript[T]) -> T:
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


def _connect_in_memory() -> sqlite3.Connection:
    connection = connect(":memory:")
    connection.execute("PRAGMA foreign_keys=ON")
    return connection


# --- threads for long reads ---------------------------------------------------------------------------

# `waiting` waits for a connection or a lock. `long` runs queries that look through much, on connections
# that no quick read needs. `reader` finishes reads that already have a connection and waits for nobody, so
# connections always come back: the other two must never run there.
_THREADS = {"waiting": 1, "long": LONG_READS, "reader": LONG_READS}
_pools: dict[str, ThreadPoolExecutor] = {}
_threads_lock = threading.Lock()


def _submit(kind: str, work: Callable[[], T]) -> Future[T]:
    with _threads_lock:
        if kind not in _pools:
            _pools[kind] = ThreadPoolExecutor(_THREADS[kind], thread_name_prefix=f"recollect-{kind}")
        return _pools[kind].submit(work)


async def in_waiting_thread(work: Callable[[], T]) -> T:
    """Run what may have to wait on a thread of ours: asyncio's own may be taken by others."""
    return await asyncio.wrap_future(_submit("waiting", work))


async def in_long_thread(work: Callable[[], T]) -> T:
    """Run a query that looks through much, beside a few others of its kind."""
    return await asyncio.wrap_future(_submit("long", work))


async def in_working_thread(work: Callable[[], T], done: Callable[[Future[T]], None]) -> T:
    """Run what takes long and waits for nobody; `done` is called in any case, also if it was never begun."""
    future = _submit("reader", work)
    future.add_done_callback(done)
    return await asyncio.wrap_future(future)


def forget_threads() -> None:
    """After a fork, in the child: the threads are not there."""
    global _threads_lock
    _pools.clear()
    _threads_lock = threading.Lock()
