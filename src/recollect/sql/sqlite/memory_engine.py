"""The engine of a private database in memory."""

import asyncio
import sqlite3
import threading
from functools import partial
from typing import TypeVar, cast

from ...cancellation import wait_until_done
from ..schema import Schema
from ..scripts import MakeScript
from .connection import EngineOptions, connect, explain, run_script
from .fetcher import Fetcher, run_on_waiting_thread
from .migrations import migrate
from .readers import Readers

T = TypeVar("T")


class MemoryEngine:
    """A private database in memory, on one connection and without a thread. Closing it deletes the data."""

    def __init__(self, options: EngineOptions) -> None:
        self._readers = Readers(_connect_in_memory, 1)
        self._prepared: set[Schema] = set()
        self._fetcher = Fetcher(":memory:", options, self._readers)
        self.fetch = self._fetcher.fetch

    async def prepare(self, schema: Schema) -> None:
        """Create the tables."""
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
        """Rewrite the database, so that no deleted data is left in it."""
        await run_on_waiting_thread(self._vacuum)

    async def clear_log(self) -> bool:
        """There is no log."""
        return True

    def _vacuum(self) -> None:
        with self._fetcher.connection() as connection:
            connection.execute("VACUUM")

    async def _write_in_turn(self, make_script: MakeScript[T]) -> T:
        """Wait for the connection, then write.

        A call that is cancelled while it waits writes nothing. If it has the connection already, the write is
        finished before the cancellation is raised.
        """
        pending = _PendingWrite()
        writing = asyncio.ensure_future(
            run_on_waiting_thread(partial(self._write_waiting, pending, make_script))
        )
        try:
            return cast(T, await asyncio.shield(writing))
        except asyncio.CancelledError:
            if not pending.cancel():
                await wait_until_done(writing)
            raise

    def _write_waiting(self, pending: "_PendingWrite", make_script: MakeScript[T]) -> T | None:
        with self._fetcher.connection() as connection:
            return _run_in_transaction(connection, make_script) if pending.begin() else None

    def close(self) -> None:
        """Close the connection. The data is gone then."""
        self._readers.empty()

    def before_fork(self) -> None:
        """Wait until the connection is free. Both processes then have a copy of the memory."""
        self._readers.pause()

    def after_fork_in_parent(self) -> None:
        """Continue."""
        self._readers.resume()

    def after_fork_in_child(self) -> None:
        """Continue with the copy."""
        self._readers.restart()


class _PendingWrite:
    """A write that waits: either it begins first, or it is cancelled first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun = self._cancelled = False

    def begin(self) -> bool:
        """Begin the write. `False` if it was cancelled before."""
        with self._lock:
            self._begun = not self._cancelled
            return self._begun

    def cancel(self) -> bool:
        """Cancel the write. `False` if it has begun already."""
        with self._lock:
            self._cancelled = not self._begun
            return self._cancelled


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
