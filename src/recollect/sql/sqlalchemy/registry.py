"""The registry of engines, one for each URL and event loop, shared by the sessions of that URL.

A driver's connections belong to the event loop that opened them, so each loop has an engine of its own. It is
disposed of with the last session that uses it, or when its loop ends.
"""

import asyncio
import os
import sqlite3
import threading
import weakref
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any

import sqlalchemy
from sqlalchemy import event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool

from ...errors import MissingExtraError
from ...event_loops import Lifetime, PerLoop
from ...private_files import create_private
from ..urls import check_supported, name_hosts
from .connections import Connections, EngineState
from .engine import SQLAlchemyEngine
from .hosts import Hosts

_LONGEST_CALL = 60  # seconds
_LONGEST_CONNECT = 10
_SQLITE_BUSY = 60
# No overflow: its connections would be opened and closed again with each burst of calls.
_POOL = {"pool_size": 10, "max_overflow": 0}
# With these, a pool awaits something to give out an idle connection, or does not give them out in turn.
_NOT_DIRECTLY = {"pool_pre_ping", "pool_recycle", "pool_use_lifo"}
_AWAITS_ALWAYS = sqlalchemy.__version__.startswith("2.0.")
_POOL_OPTIONS = {"pool", "poolclass", "pool_size", "max_overflow"}


class URLEngines:
    """The engines of one URL, one for each event loop, and the number of their users."""

    def __init__(self, url: URL, options: Mapping[str, Any]) -> None:
        self.url = url
        self.users = 0
        self._options = options
        self.is_private = _is_in_memory(url)
        if self.is_private:
            self._keep_memory_database()
        self._hosts = Hosts(self.url)
        self._opened = PerLoop(partial(_open, self.url, self._options, self._hosts), _dispose, _abandon)

    def here(self) -> Connections:
        """The connections of the running event loop."""
        return self._opened.get()

    @property
    def engine(self) -> AsyncEngine:
        """The engine of the running event loop. Without a loop, an engine that no session uses."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._engine_without_loop
        return self.here().engine

    @cached_property
    def _engine_without_loop(self) -> AsyncEngine:
        return _create_engine(self.url, self._options, dict(self._options.get("connect_args", {})))

    def forget(self) -> Lifetime | None:
        """Forget all engines, and return the lifetime of this loop's. Other loops close their own soon."""
        return self._opened.forget_all()

    def _keep_memory_database(self) -> None:
        """Keep a database in memory alive while it has users, whichever event loops end meanwhile."""
        name = f"file:recollect-{id(self)}"
        keeper = sqlite3.connect(f"{name}?mode=memory&cache=shared", uri=True, check_same_thread=False)
        weakref.finalize(self, keeper.close)
        self.url = self.url.set(database=name, query={"mode": "memory", "cache": "shared", "uri": "true"})
        # One connection only: others would fail instead of waiting for each other on such a database.
        pool = {"poolclass": AsyncAdaptedQueuePool, "pool_size": 1, "max_overflow": 0}
        self._options = {**self._options, **pool}


class SharedEngine(SQLAlchemyEngine):
    """One user of the engines of a URL."""

    def __init__(self, engines: URLEngines, create_tables: bool) -> None:
        super().__init__(engines.here, create_tables)
        self.engines = engines
        self.url = engines.url

    @property
    def engine(self) -> AsyncEngine:
        """The engine of the running event loop."""
        return self.engines.engine

    def connection_counts(self) -> dict[str, int]:
        """Connections in the pool of the running event loop, by state."""
        pool: Any = self.engines.here().engine.sync_engine.pool
        return {"used": pool.checkedout(), "idle": pool.checkedin(), "most": pool.size()}


def _open(url: URL, options: Mapping[str, Any], hosts: Hosts) -> Connections:
    connect_args = {**_timeouts(url), **options.get("connect_args", {})}
    longest_call = None if url.get_driver_name() == "asyncpg" else connect_args.pop("command_timeout", None)
    engine = _create_engine(url, options, connect_args)
    hosts.watch(engine)
    is_direct = not (_AWAITS_ALWAYS or _NOT_DIRECTLY & options.keys())
    return Connections(
        engine,
        EngineState(),
        autocommits=True,
        reuses_directly=is_direct and engine.dialect.name == "postgresql",
        longest_call=longest_call,
    )


async def _dispose(connections: Connections) -> None:
    await connections.engine.dispose()


def _abandon(connections: Connections) -> None:
    """The loop of the connections was closed, so they cannot be closed in it."""
    connections.engine.sync_engine.dispose(close=False)


def _create_engine(url: URL, options: Mapping[str, Any], connect_args: dict[str, Any]) -> AsyncEngine:
    """An engine with our defaults. It connects when it is first used."""
    engine = create_async_engine(
        url,
        **{
            "hide_parameters": True,  # parameters are contents
            "pool_pre_ping": url.get_backend_name() in ("mysql", "mariadb"),
            **({} if _POOL_OPTIONS & options.keys() else _POOL),
            **options,
            "connect_args": connect_args,
            "isolation_level": "AUTOCOMMIT",  # our own statements begin and end transactions
            "pool_reset_on_return": None,  # so the pool has none to end
        },
    )
    if engine.dialect.name == "sqlite":
        event.listen(engine.sync_engine, "do_connect", _create_file)
        event.listen(engine.sync_engine, "connect", _configure_sqlite)
    return engine


def _timeouts(url: URL) -> dict[str, int]:
    """The timeouts in the words of the driver. Most have no `command_timeout`: we apply it ourselves."""
    match url.get_backend_name(), url.get_driver_name():
        case "postgresql", "asyncpg":
            return {"timeout": _LONGEST_CONNECT, "command_timeout": _LONGEST_CALL}
        case "sqlite", _:
            return {}
        case _:
            return {"connect_timeout": _LONGEST_CONNECT, "command_timeout": _LONGEST_CALL}


def _create_file(_: Any, __: Any, arguments: list[Any], ___: Any) -> None:
    """Create the file with mode 0600 before the driver creates it with another mode."""
    if not arguments[0].startswith("file:"):  # a URI may name a database in memory
        create_private(arguments[0])


def _configure_sqlite(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={_SQLITE_BUSY * 1000}")
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


# --- URLs ---

_ASYNC_DRIVERS = {
    "postgres": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
    "sqlite": "sqlite+aiosqlite",
    "mysql": "mysql+asyncmy",
    "mariadb": "mariadb+asyncmy",
}

_EXTRA_OF_DRIVER = {
    "asyncpg": "postgres",
    "psycopg": "postgres",
    "psycopg_async": "postgres",
    "aiosqlite": "postgres",
    "asyncmy": "mysql",
}


def parse_url(url: str) -> URL:
    """The URL with an async driver that is installed. Raises `ValueError` if it is invalid."""
    try:
        parsed = make_url(name_hosts(url) if isinstance(url, str) else url)
        parsed = parsed.set(drivername=_ASYNC_DRIVERS.get(parsed.drivername, parsed.drivername))
        dialect = parsed.get_dialect(_is_async=True)
    except (ArgumentError, NoSuchModuleError, ValueError):
        # The cause is dropped, because it may quote the URL with its password.
        raise ValueError("not a database URL, such as postgresql://user@host/name") from None
    check_supported(dialect.name)
    if not dialect.is_async:
        raise ValueError(f"{parsed.drivername} is not an async driver; use postgresql+asyncpg or another")
    try:
        dialect.import_dbapi()
    except ImportError as error:
        extra = _EXTRA_OF_DRIVER.get(dialect.driver)
        if extra is not None:
            raise MissingExtraError(f"the driver {parsed.drivername}", extra) from error
        raise ValueError(f"{parsed.drivername} is not installed: pip install {dialect.driver}") from error
    return parsed


def _is_in_memory(url: URL) -> bool:
    return url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:")


# --- the registry ---

_shared: dict[tuple[str, str], URLEngines] = {}
_lock = threading.RLock()


def acquire_shared(url: str, options: Mapping[str, Any], create_tables: bool) -> SharedEngine:
    """The shared engine of a URL with these options, for one more user.

    A database in memory is not shared: each user gets its own.
    """
    key = (url, repr(sorted(options.items())))
    with _lock:
        engines = _shared.get(key)
        if engines is None:
            engines = URLEngines(parse_url(url), options)
            if not engines.is_private:
                _shared[key] = engines
        engines.users += 1
        return SharedEngine(engines, create_tables)


def release_shared(shared: SharedEngine) -> Lifetime | None:
    """Remove one user. After the last one all engines are closed: see `URLEngines.forget`."""
    engines = shared.engines
    with _lock:
        engines.users -= 1
        if engines.users:
            return None
        for key in [key for key, value in _shared.items() if value is engines]:
            del _shared[key]
    return engines.forget()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork_in_child)
