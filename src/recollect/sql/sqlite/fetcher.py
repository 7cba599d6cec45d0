"""Queries on a pool of connections: quick ones run where they are called, long ones on a thread.

A hop to a thread costs more than a small read. A read that takes longer moves to a thread, with the rows read
so far. Three pools of threads serve the reads of the process:

- `waiting` waits for a connection or a lock.
- `long` runs queries that work for long before their first row, on connections that no quick read needs.
- `reader` finishes reads that already have a connection. Its work never waits for a connection or a lock, so
  connections always come back. Work of the other two kinds must therefore never run there.
"""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from ..garbage import pause_garbage_collection
from ..scripts import Decode, LongQuery, Row
from .connection import FAULTS, EngineOptions, explain, is_busy, wait_for_lock
from .readers import Readers

T = TypeVar("T")

LONG_READS = 4
"""Long reads that run at the same time: each has a thread, and a connection that no quick read needs."""
_INLINE_SECONDS = 0.002
_ROWS_PER_FETCH = 32
_SMALL_SIZE = 2**16  # characters and bytes


class Fetcher:
    """Runs queries on a pool of connections: inline while they are quick, else on a thread."""

    def __init__(self, path: str, options: EngineOptions, readers: Readers) -> None:
        self._path = path
        self._busy_timeout = options.busy_timeout
        self.readers = readers

    async def fetch(self, sql: str, parameters: Sequence[Any], decode: Decode[T]) -> T:
        """Run one query and return what `decode` makes of its rows."""
        # The deadline is checked between rows: too late for a query that does all its work before the first.
        if isinstance(sql, LongQuery):
            return await run_on_long_thread(partial(self._fetch_long, sql, parameters, decode))
        connection = self._take_nowait()
        if connection is None:
            return await run_on_waiting_thread(partial(self._fetch_waiting, sql, parameters, decode))
        give_back = True
        try:
            deadline = time.perf_counter() + _INLINE_SECONDS
            cursor = connection.execute(sql, parameters)
            rows, complete = _fetch_until(cursor, deadline)
            if complete and (time.perf_counter() < deadline or _is_small(rows)):
                return decode(rows)
            give_back = False
        except FAULTS as error:
            if not is_busy(error):
                raise explain(error, self._path) from error
        finally:
            if give_back:
                self.readers.give_back(connection)
        if give_back:
            return await run_on_waiting_thread(partial(self._fetch_waiting, sql, parameters, decode))
        self.readers.lend(connection)
        return await self._fetch_rest(connection, cursor, rows, decode)

    async def _fetch_rest(
        self, connection: sqlite3.Connection, cursor: sqlite3.Cursor, rows: list[Row], decode: Decode[T]
    ) -> T:
        """Finish a query on a thread. The thread owns the connection, even if the caller is cancelled."""

        def finish() -> T:
            with pause_garbage_collection():
                try:
                    rows.extend(cursor.fetchall())
                except FAULTS as error:
                    raise explain(error, self._path) from error
                finally:
                    cursor.close()
                    self.readers.give_back(connection)
                decoded = decode(rows)
                rows.clear()  # freed here, because freeing them on the event loop would block it
                return decoded

        def give_back_unused(future: Future[T]) -> None:
            if future.cancelled():
                cursor.close()
                self.readers.give_back(connection)

        return await run_on_reader_thread(finish, give_back_unused)

    def _fetch_waiting(self, sql: str, parameters: Sequence[Any], decode: Decode[T]) -> T:
        """Run the whole query on a thread, which may wait for a connection or a lock."""
        with self.connection() as connection:
            return self._fetch_all(connection, sql, parameters, decode)

    def _fetch_long(self, sql: str, parameters: Sequence[Any], decode: Decode[T]) -> T:
        """Run the whole query on a thread, on a connection that no quick read needs."""
        with self.connection(is_long=True) as connection:
            return self._fetch_all(connection, sql, parameters, decode)

    def _fetch_all(
        self, connection: sqlite3.Connection, sql: str, parameters: Sequence[Any], decode: Decode[T]
    ) -> T:
        with pause_garbage_collection():
            rows = wait_for_lock(lambda: connection.execute(sql, parameters).fetchall(), self._busy_timeout)
            return decode(rows)

    @contextmanager
    def connection(self, *, is_long: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection of the pool. Waits for a free one, so do not call it on the event loop's thread."""
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
    """The rows read before the deadline, and whether these are all."""
    rows: list[Row] = []
    while time.perf_counter() < deadline:
        some = cursor.fetchmany(_ROWS_PER_FETCH)
        rows += some
        if len(some) < _ROWS_PER_FETCH:
            return rows, True
    return rows, False


def _is_small(rows: list[Row]) -> bool:
    """Whether decoding the rows takes less than a hop to a thread. A busy machine delays small reads, too."""
    if len(rows) > _ROWS_PER_FETCH:
        return False
    sizes = (len(value) for row in rows for value in row if isinstance(value, str | bytes))
    return sum(sizes) <= _SMALL_SIZE


# --- threads ---

_THREADS = {"waiting": 1, "long": LONG_READS, "reader": LONG_READS}
_pools: dict[str, ThreadPoolExecutor] = {}
_pools_lock = threading.Lock()


def _submit(kind: str, work: Callable[[], T]) -> Future[T]:
    with _pools_lock:
        if kind not in _pools:
            _pools[kind] = ThreadPoolExecutor(_THREADS[kind], thread_name_prefix=f"recollect-{kind}")
        return _pools[kind].submit(work)


async def run_on_waiting_thread(work: Callable[[], T]) -> T:
    """Run work that may wait. Not on asyncio's own threads: the application may occupy all of them."""
    return await asyncio.wrap_future(_submit("waiting", work))


async def run_on_long_thread(work: Callable[[], T]) -> T:
    """Run a long query. A few of them run at the same time."""
    return await asyncio.wrap_future(_submit("long", work))


async def run_on_reader_thread(work: Callable[[], T], done: Callable[[Future[T]], None]) -> T:
    """Run long work that never waits. `done` is always called, even if the work was cancelled unstarted."""
    future = _submit("reader", work)
    future.add_done_callback(done)
    return await asyncio.wrap_future(future)


def reset_threads() -> None:
    """Forget the pools after a fork, in the child: their threads exist in the parent only."""
    global _pools_lock
    _pools.clear()
    _pools_lock = threading.Lock()
