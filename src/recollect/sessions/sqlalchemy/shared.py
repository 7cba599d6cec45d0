"""One engine for each URL, shared by the sessions that name it.

A driver's connections belong to the event loop that opened them, so there is one engine for each loop too.
It is disposed of with the last session that uses it, or when its loop ends.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from ...errors import MissingExtraError
from ..sql.scripts import Decode, MakeScript, T
from ..sql.tables import Tables
from .engine import SQLAlchemyEngine

_SQLITE_BUSY_SECONDS = 60


class SharedEngine:
    """The engines of one URL, one for each event loop, and how many sessions use them."""

    def __init__(self, url: URL, options: dict[str, Any], create_tables: bool) -> None:
        self.url = url
        self.users = 0
        self._options = options
        self._create_tables = create_tables
        self._by_loop: dict[asyncio.AbstractEventLoop, tuple[AsyncEngine, SQLAlchemyEngine, Any]] = {}

    async def here(self) -> SQLAlchemyEngine:
        """The engine of the running event loop."""
        loop = asyncio.get_running_loop()
        found = self._by_loop.get(loop)
        if found is None:
            self._forget_ended_loops()
            engine = _make_engine(self.url, self._options)
            disposal = _dispose_when_loop_ends(engine)
            found = self._by_loop[loop] = (engine, SQLAlchemyEngine(engine, self._create_tables), disposal)
            await anext(disposal)
        return found[1]

    async def prepare(self, tables: Tables) -> None:
        """Make the tables, where that was asked for."""
        await (await self.here()).prepare(tables)

    async def write(self, make_script: MakeScript[T]) -> T:
        """Run a script in a transaction and return its result."""
        return await (await self.here()).write(make_script)

    async def fetch(self, sql: str, parameters: Sequence[Any], decode: Decode[T]) -> T:
        """Run one query and return what `decode` makes of its rows."""
        return await (await self.here()).fetch(sql, parameters, decode)

    async def dispose(self) -> None:
        """Close the connections of this loop; those of other loops are closed when their loops end."""
        found = self._by_loop.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found[2].aclose()

    def _forget_ended_loops(self) -> None:
        for loop in [loop for loop in self._by_loop if loop.is_closed()]:
            engine, _, _ = self._by_loop.pop(loop)
            engine.sync_engine.dispose(close=False)


async def _dispose_when_loop_ends(engine: AsyncEngine) -> AsyncIterator[None]:
    """Waits, once started, for its loop to shut down: asyncio closes the generators of a loop then."""
    try:
        yield
    finally:
        await engine.dispose()


def _make_engine(url: URL, options: dict[str, Any]) -> AsyncEngine:
    engine = create_async_engine(url, **options)
    if engine.dialect.name == "sqlite":
        event.listen(engine.sync_engine, "connect", _configure_sqlite)
    return engine


def _configure_sqlite(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={_SQLITE_BUSY_SECONDS * 1000}")
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


# --- URLs ---

_ASYNC_DRIVERS = {
    "postgres": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
    "sqlite": "sqlite+aiosqlite",
}


def checked_url(url: str) -> URL:
    """The URL with an async driver that is installed; a `ValueError` says what is wrong with it."""
    try:
        parsed = make_url(url)
        parsed = parsed.set(drivername=_ASYNC_DRIVERS.get(parsed.drivername, parsed.drivername))
        dialect = parsed.get_dialect(_is_async=True)
    except (ArgumentError, NoSuchModuleError) as error:
        raise ValueError("not the URL of a database, such as postgresql://user@host/name") from error
    if not dialect.is_async:
        raise ValueError(f"{parsed.drivername} is not an async driver; use postgresql+asyncpg or another")
    try:
        dialect.import_dbapi()
    except ImportError as error:
        raise MissingExtraError(f"the driver {parsed.drivername}", "postgres") from error
    return parsed


# --- the registry ---

_shared: dict[tuple[str, str, bool], SharedEngine] = {}
_lock = threading.RLock()


def acquire_shared(url: str, options: dict[str, Any], create_tables: bool) -> SharedEngine:
    """The shared engine of a URL with these options, counted as used once more."""
    key = (url, repr(sorted(options.items())), create_tables)
    with _lock:
        shared = _shared.get(key)
        if shared is None:
            shared = _shared[key] = SharedEngine(checked_url(url), options, create_tables)
        shared.users += 1
        return shared


def release_shared(shared: SharedEngine) -> bool:
    """Count one use less; says whether it was the last."""
    with _lock:
        shared.users -= 1
        if shared.users:
            return False
        for key in [key for key, value in _shared.items() if value is shared]:
            del _shared[key]
        return True


def _after_fork_in_child() -> None:
    """A child must not speak on the connections of its parent; it makes its own."""
    global _lock
    _lock = threading.RLock()
    for shared in _shared.values():
        shared._by_loop.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
