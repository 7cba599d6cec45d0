"""Databases opened by URL or path, for stores that have tables of their own."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar
from weakref import WeakSet

from ..errors import DiskFullError
from ..event_loops import Lifetime
from ..extras import require_extra
from .schema import Schema
from .scripts import Decode, Engine, MakeScript, Script
from .sqlite.connection import EngineOptions
from .sqlite.registry import acquire_engine, drop_engine, release_engine
from .urls import sqlite_path

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

T = TypeVar("T")

_full: WeakSet[Engine] = WeakSet()  # engines whose disk was full
_NOT_SERVED = ("mariadb", "memory", "mssql", "mysql", "openai", "oracle", "redis", "unix")
_SERVED = ("postgresql", "sqlite")


class Database:
    """A handle on an engine, which other handles may share. It may be closed more than once."""

    def __init__(
        self,
        engine: Engine,
        dialect: str,
        release: Callable[[], Lifetime | None],
        drop: Callable[[], object],
    ) -> None:
        """`release` gives the engine back and returns a generator to close, if any; `drop` never waits."""
        self.engine = engine
        self.dialect = dialect
        self.closed = False
        self._release = release
        self._drop = drop

    def connection_counts(self) -> Mapping[str, int]:
        """Connections of the pool by state (`used`, `idle`, `most`); empty for a file, which has no pool."""
        count = getattr(self.engine, "connection_counts", dict)
        counts: Mapping[str, int] = count()
        return counts

    def close(self) -> None:
        """Release the engine without waiting. It is closed soon after its last handle."""
        self._release_once()

    async def aclose(self) -> None:
        """Release the engine. If this was the last handle, wait until it is closed."""
        closing = self._release_once()
        if closing is not None:
            await closing.aclose()

    def _release_once(self) -> Lifetime | None:
        if self.closed:
            return None
        self.closed = True
        return self._release()

    def __del__(self) -> None:
        if not getattr(self, "closed", True):
            self._drop()


def open_database(
    url_or_path: str | Path, create_tables: bool = False, engine_kwargs: Mapping[str, Any] | None = None
) -> Database:
    """The database at a path, `sqlite:///path`, `:memory:`, or a URL of SQLAlchemy such as `postgresql://…`.

    Sessions on the same database share the engine; `:memory:` is private. The tables of a file are created
    automatically. On a server run `recollect migrate`, or set `create_tables`. `engine_kwargs` go to
    SQLAlchemy's `create_async_engine`. Raises `ValueError` for other databases than SQLite and PostgreSQL.
    """
    if not isinstance(url_or_path, str | Path):
        raise TypeError(f"give a path or a URL, not {type(url_or_path).__name__}")
    url = str(url_or_path)
    path = sqlite_path(url)
    if path == "":
        raise ValueError("give the path of a file, or :memory:")
    return _open_server(url, create_tables, engine_kwargs) if path is None else _open_file(path)


def _open_file(path: str) -> Database:
    engine = acquire_engine(path, EngineOptions())
    return Database(engine, "sqlite", partial(release_engine, engine), partial(drop_engine, engine))


def _open_server(url: str, create_tables: bool, engine_kwargs: Mapping[str, Any] | None) -> Database:
    scheme = url.split("://", 1)[0]
    if scheme.startswith(_NOT_SERVED):
        raise ValueError(f"only SQLite and PostgreSQL are supported here, not {scheme}://")
    require_extra("postgres", "sqlalchemy.ext.asyncio", "a database server")
    from .sqlalchemy.registry import acquire_shared, release_shared

    shared = acquire_shared(url, engine_kwargs or {}, create_tables)
    dialect = shared.url.get_backend_name()
    if dialect not in _SERVED:
        release_shared(shared)
        raise ValueError(f"only SQLite and PostgreSQL are supported here, not {dialect}")
    return Database(shared, dialect, partial(release_shared, shared), partial(release_shared, shared))


def open_on_engine(engine: "AsyncEngine", create_tables: bool = False) -> Database:
    """A database on an SQLAlchemy engine that the caller opened. Closing it never disposes of the engine."""
    from sqlalchemy.ext.asyncio import AsyncEngine

    from .sqlalchemy.connections import connections_on
    from .sqlalchemy.engine import SQLAlchemyEngine

    if not isinstance(engine, AsyncEngine):
        raise TypeError(f"engine must be an AsyncEngine of SQLAlchemy, not {type(engine).__name__}")
    connections = connections_on(engine)
    running = SQLAlchemyEngine(lambda: connections, create_tables)
    return Database(running, engine.dialect.name, lambda: None, lambda: None)


@dataclass
class JoiningScript:
    """A script that waits for a write of the same task, to run in the same transaction."""

    engine: Engine
    make_script: MakeScript[object]
    has_joined: bool = False
    is_written: bool = False


_joining: ContextVar[JoiningScript | None] = ContextVar("recollect_joining", default=None)


def _run_both(make_script: MakeScript[T], make_joining: MakeScript[object]) -> Script[T]:
    result = yield from make_script()
    yield from make_joining()
    return result


class SQLStore:
    """Base class of objects that have tables of their own in a database."""

    schema: ClassVar[Schema]
    """The tables."""

    def __init__(
        self,
        url_or_path: "str | Path | Database",
        *,
        create_tables: bool = False,
        engine_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(url_or_path, Database):
            self._database = url_or_path
        else:
            self._database = open_database(url_or_path, create_tables, engine_kwargs)

    async def _write(self, make_script: MakeScript[T]) -> T:
        with self._note_full_disk():
            engine, joining = await self._prepared(), _joining.get()
            if joining is None or joining.has_joined or joining.engine is not engine:
                return await engine.write(make_script)
            joining.has_joined = True
            result = await engine.write(partial(_run_both, make_script, joining.make_script))
            joining.is_written = True
            return result

    @contextmanager
    def _join_next_write(self, make_script: MakeScript[object]) -> Iterator[JoiningScript]:
        """Run a script at the end of the next transaction of this task, if it writes to the same file.

        The transaction may be that of another store. If it fails, the script has no effect either. Whether
        the script has run is in `is_written` after the block. On a database server it never runs: a
        transaction of two statements takes more round trips there than two statements.
        """
        joining = JoiningScript(self._database.engine, make_script, self._database.dialect != "sqlite")
        token = _joining.set(joining)
        try:
            yield joining
        finally:
            _joining.reset(token)

    @property
    def is_full(self) -> bool:
        """Whether a write of this process to this database has failed because its disk was full."""
        return self._database.engine in _full

    def forget_full(self) -> None:
        """Reset `is_full`: the disk has space again."""
        _full.discard(self._database.engine)

    def connection_counts(self) -> Mapping[str, int]:
        """Connections of the pool by state (`used`, `idle`, `most`); empty for a file, which has no pool."""
        return self._database.connection_counts()

    async def _fetch(self, sql: str, parameters: Sequence[Any], decode: Decode[T]) -> T:
        with self._note_full_disk():
            return await (await self._prepared()).fetch(sql, parameters, decode)

    @contextmanager
    def _note_full_disk(self) -> Iterator[None]:
        try:
            yield
        except DiskFullError:
            _full.add(self._database.engine)
            raise

    async def _prepared(self) -> Engine:
        if self._database.closed:
            raise RuntimeError(f"the {type(self).__name__} is closed")
        await self._database.engine.prepare(self.schema)
        return self._database.engine

    def close(self) -> None:
        """Release the database without waiting. May be called more than once."""
        self._database.close()

    async def aclose(self) -> None:
        """Release the database. May be called more than once."""
        await self._database.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()
