"""The two ends of a copy: a SQLite file and a PostgreSQL database, with the same few operations."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ...extras import require_extra
from ...sql.scripts import Row
from ...sql.sqlalchemy.revisions import VERSION_TABLE
from ...sql.sqlite.migrations import LEDGER
from ...sql.urls import sqlite_path
from .values import ARRAYS, CAST, from_server, to_server

_LEFT_OUT = ("sqlite_", VERSION_TABLE, LEDGER)  # catalogs and records of migrations
_BUSY = 60.0  # seconds to wait for other writers of a file


@dataclass(frozen=True)
class TableInfo:
    """A table as the catalog of its database describes it."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    kinds: tuple[str, ...] = field(default=())
    """The types of the columns, on a server."""

    def places(self, names: Sequence[str]) -> list[int]:
        """The places of columns in a row."""
        return [self.columns.index(name) for name in names]


class End(Protocol):
    """A database that is read from or written to. Rows are in the form in which SQLite stores them."""

    is_server: bool

    async def tables(self) -> dict[str, TableInfo]:
        """All tables, parents before the tables that refer to them."""
        ...

    async def query(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        """The rows of a query, as the database returns them."""
        ...

    async def count(self, table: TableInfo) -> int:
        """The number of rows."""
        ...

    async def page(self, table: TableInfo, after: Row | None, limit: int) -> list[Row]:
        """Rows in the order of the key, after a key."""
        ...

    async def find(self, table: TableInfo, keys: Sequence[Row]) -> list[Row]:
        """The rows with these keys."""
        ...

    async def put(self, table: TableInfo, rows: Sequence[Row]) -> None:
        """Insert rows, or replace those with the same keys, in one transaction."""
        ...

    async def remove(self, table: TableInfo, keys: Sequence[Row]) -> None:
        """Delete the rows with these keys."""
        ...

    async def make_ready(self, table: TableInfo) -> None:
        """Drop the indexes of vectors of an empty table: they are made faster when it is filled."""
        ...

    async def finish(self) -> None:
        """Let ids that the database assigns go on after the copied ones."""
        ...


@asynccontextmanager
async def open_end(url: str, *, to_write: bool) -> AsyncIterator[End]:
    """Open a database. One that is read shows a snapshot: what is written meanwhile is not seen."""
    path = sqlite_path(url)
    if path is not None:
        connection = await asyncio.to_thread(_connect, path, to_write)
        try:
            yield FileEnd(connection)
        finally:
            await asyncio.to_thread(connection.close)
        return
    require_extra("postgres", "sqlalchemy.ext.asyncio", "a database server")
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    from ...sql.sqlalchemy.connections import connections_on
    from ...sql.sqlalchemy.registry import parse_url

    engine = create_async_engine(parse_url(url), poolclass=NullPool)
    try:
        async with connections_on(engine).acquire() as run:
            if not to_write:
                await run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield ServerEnd(run)
            if not to_write:
                await run("COMMIT")
    finally:
        await engine.dispose()


def _connect(path: str, to_write: bool) -> sqlite3.Connection:
    mode = "rw" if to_write else "ro"
    connection = sqlite3.connect(
        f"{Path(path).resolve().as_uri()}?mode={mode}",
        uri=True,
        timeout=_BUSY,
        isolation_level=None,
        check_same_thread=False,
    )
    if to_write:
        connection.execute("PRAGMA foreign_keys = OFF")  # children may be copied before their parents change
    else:
        connection.execute("BEGIN")
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    return connection


def _is_copied(name: str) -> bool:
    return not name.startswith(_LEFT_OUT)


class FileEnd:
    """A SQLite file."""

    is_server = False

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def _run(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return await asyncio.to_thread(lambda: self._connection.execute(sql, parameters).fetchall())

    async def query(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        """The rows of a query, as the database returns them."""
        return await self._run(sql, parameters)

    async def tables(self) -> dict[str, TableInfo]:
        """All tables. Their order does not matter here: foreign keys are not checked."""
        names = await self._run("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        found = {}
        for (name,) in names:
            if _is_copied(name):
                columns = await self._run(f'PRAGMA table_info("{name}")')
                key = sorted((row[5], row[1]) for row in columns if row[5])
                found[name] = TableInfo(
                    name, tuple(row[1] for row in columns), tuple(each for _, each in key)
                )
        return found

    async def count(self, table: TableInfo) -> int:
        """The number of rows."""
        rows = await self._run(f'SELECT count(*) FROM "{table.name}"')
        return int(rows[0][0])

    async def page(self, table: TableInfo, after: Row | None, limit: int) -> list[Row]:
        """Rows in the order of the key, after a key."""
        key = ", ".join(table.key)
        where = "" if after is None else f" WHERE ({key}) > ({_marks(len(table.key), 2)})"
        sql = f'SELECT {", ".join(table.columns)} FROM "{table.name}"{where} ORDER BY {key} LIMIT ?1'
        return await self._run(sql, (limit, *(after or ())))

    async def find(self, table: TableInfo, keys: Sequence[Row]) -> list[Row]:
        """The rows with these keys."""
        sql = f'SELECT {", ".join(table.columns)} FROM "{table.name}" WHERE {_among(table.key, len(keys))}'
        return await self._run(sql, [value for key in keys for value in key])

    async def put(self, table: TableInfo, rows: Sequence[Row]) -> None:
        """Insert rows, or replace those with the same keys, in one transaction."""
        marks = ", ".join("?" for _ in table.columns)
        sql = f'INSERT INTO "{table.name}" ({", ".join(table.columns)}) VALUES ({marks}){_upsert(table)}'

        def write() -> None:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany(sql, rows)
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

        await asyncio.to_thread(write)

    async def remove(self, table: TableInfo, keys: Sequence[Row]) -> None:
        """Delete the rows with these keys."""
        given = [value for key in keys for value in key]
        await self._run(f'DELETE FROM "{table.name}" WHERE {_among(table.key, len(keys))}', given)

    async def make_ready(self, table: TableInfo) -> None:
        """Nothing to do: SQLite has no indexes of vectors."""

    async def finish(self) -> None:
        """Nothing to do: SQLite counts on from the highest id."""


def _marks(count: int, first: int) -> str:
    return ", ".join(f"?{number}" for number in range(first, first + count))


def _among(key: Sequence[str], count: int) -> str:
    """A condition for keys. Each part is a parameter: a key may hold bytes, which JSON has not."""
    marks = f"({', '.join('?' for _ in key)})"
    return f"({', '.join(key)}) IN (VALUES {', '.join([marks] * count)})"


def _upsert(table: TableInfo) -> str:
    others = [name for name in table.columns if name not in table.key]
    if not others:
        return f" ON CONFLICT ({', '.join(table.key)}) DO NOTHING"
    changed = ", ".join(f"{name} = excluded.{name}" for name in others)
    return f" ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {changed}"


# --- PostgreSQL ---

_COLUMNS = (
    "SELECT CAST(c.relname AS TEXT), CAST(a.attname AS TEXT), CAST(t.typname AS TEXT)"
    " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
    " JOIN pg_type t ON t.oid = a.atttypid"
    " WHERE c.relkind = 'r' AND c.relnamespace = CAST(current_schema() AS regnamespace)"
    " ORDER BY c.relname, a.attnum"
)
_KEYS = (
    "SELECT CAST(c.relname AS TEXT), CAST(a.attname AS TEXT) FROM pg_constraint r"
    " JOIN pg_class c ON c.oid = r.conrelid"
    " CROSS JOIN LATERAL unnest(r.conkey) WITH ORDINALITY AS k(n, place)"
    " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.n"
    " WHERE r.contype = 'p' AND c.relnamespace = CAST(current_schema() AS regnamespace)"
    " ORDER BY c.relname, k.place"
)
_PARENTS = (
    "SELECT CAST(c.relname AS TEXT), CAST(p.relname AS TEXT) FROM pg_constraint r"
    " JOIN pg_class c ON c.oid = r.conrelid JOIN pg_class p ON p.oid = r.confrelid WHERE r.contype = 'f'"
    " AND c.oid <> p.oid"
)
_OF_VECTORS = (
    "SELECT CAST(i.relname AS TEXT) FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid"
    " JOIN pg_class c ON c.oid = x.indrelid JOIN pg_am m ON m.oid = i.relam"
    " WHERE c.relname = CAST(?1 AS TEXT) AND m.amname IN ('hnsw', 'ivfflat')"
)
_SERIALS = (
    "SELECT CAST(c.relname AS TEXT), CAST(a.attname AS TEXT),"
    " pg_get_serial_sequence(quote_ident(c.relname), a.attname)"
    " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
    " WHERE c.relkind = 'r' AND c.relnamespace = CAST(current_schema() AS regnamespace)"
    " AND pg_get_serial_sequence(quote_ident(c.relname), a.attname) IS NOT NULL"
)


class ServerEnd:
    """A PostgreSQL database, on one connection."""

    is_server = True

    def __init__(self, run: Any) -> None:
        self._run = run

    async def query(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        """The rows of a query, as the database returns them."""
        return [tuple(row) for row in await self._run(sql, parameters)]

    async def tables(self) -> dict[str, TableInfo]:
        """All tables of the schema, parents first."""
        columns: dict[str, list[tuple[str, str]]] = {}
        for name, column, kind in await self._run(_COLUMNS):
            columns.setdefault(name, []).append((column, kind))
        keys: dict[str, list[str]] = {}
        for name, column in await self._run(_KEYS):
            keys.setdefault(name, []).append(column)
        parents: dict[str, set[str]] = {}
        for name, parent in await self._run(_PARENTS):
            parents.setdefault(name, set()).add(parent)
        return {
            name: TableInfo(
                name,
                tuple(column for column, _ in columns[name]),
                tuple(keys.get(name, ())),
                tuple(kind for _, kind in columns[name]),
            )
            for name in _parents_first(sorted(columns), parents)
            if _is_copied(name)
        }

    async def count(self, table: TableInfo) -> int:
        """The number of rows."""
        rows = await self._run(f'SELECT count(*) FROM "{table.name}"')
        return int(rows[0][0])

    def _select(self, table: TableInfo) -> str:
        parts = (
            f"CAST(t.{name} AS TEXT)" if kind in CAST else f"t.{name}"
            for name, kind in zip(table.columns, table.kinds, strict=True)
        )
        return f'SELECT {", ".join(parts)} FROM "{table.name}" AS t'

    async def page(self, table: TableInfo, after: Row | None, limit: int) -> list[Row]:
        """Rows in the order of the key, after a key."""
        key = ", ".join(f"t.{name}" for name in table.key)
        where, given = "", ()
        if after is not None:
            where = f" WHERE ({key}) > ({_marks(len(table.key), 2)})"
            kinds = [table.kinds[place] for place in table.places(table.key)]
            given = to_server(kinds, after)
        rows = await self._run(f"{self._select(table)}{where} ORDER BY {key} LIMIT ?1", (limit, *given))
        return [from_server(table.kinds, tuple(row)) for row in rows]

    async def find(self, table: TableInfo, keys: Sequence[Row]) -> list[Row]:
        """The rows with these keys."""
        condition, given = self._among(table, keys)
        rows = await self._run(f"{self._select(table)} WHERE {condition}", given)
        return [from_server(table.kinds, tuple(row)) for row in rows]

    def _among(self, table: TableInfo, keys: Sequence[Row]) -> tuple[str, list[Any]]:
        kinds = [table.kinds[place] for place in table.places(table.key)]
        given = [to_server(kinds, key) for key in keys]
        arrays = ", ".join(
            f"CAST(?{number} AS {ARRAYS.get(kind, 'text[]')})" for number, kind in enumerate(kinds, 1)
        )
        names = ", ".join(f"t.{name}" for name in table.key)
        columns = [list(column) for column in zip(*given, strict=True)]
        return f"({names}) IN (SELECT * FROM unnest({arrays}))", columns

    async def put(self, table: TableInfo, rows: Sequence[Row]) -> None:
        """Insert rows, or replace those with the same keys, in one statement."""
        given = [to_server(table.kinds, row) for row in rows]
        kinds = list(enumerate(table.kinds, 1))
        arrays = ", ".join(f"CAST(?{number} AS {ARRAYS.get(kind, 'text[]')})" for number, kind in kinds)
        values = ", ".join(
            f"CAST(v{number} AS {kind})" if kind in CAST else f"v{number}" for number, kind in kinds
        )
        names = ", ".join(f"v{number}" for number, _ in kinds)
        sql = (
            f'INSERT INTO "{table.name}" ({", ".join(table.columns)}) SELECT {values}'
            f" FROM unnest({arrays}) AS given ({names}){_upsert(table)}"
        )
        await self._run(sql, [list(column) for column in zip(*given, strict=True)])

    async def remove(self, table: TableInfo, keys: Sequence[Row]) -> None:
        """Delete the rows with these keys, and the rows that refer to them."""
        condition, given = self._among(table, keys)
        await self._run(f'DELETE FROM "{table.name}" AS t WHERE {condition}', given)

    async def make_ready(self, table: TableInfo) -> None:
        """Drop the indexes of vectors."""
        for (name,) in await self._run(_OF_VECTORS, (table.name,)):
            await self._run(f'DROP INDEX "{name}"')

    async def finish(self) -> None:
        """Let sequences go on after the highest id."""
        for table, column, sequence in await self._run(_SERIALS):
            await self._run(
                f"SELECT setval('{sequence}', greatest((SELECT max({column}) FROM \"{table}\"), 1),"
                f' EXISTS (SELECT 1 FROM "{table}"))'
            )


def _parents_first(names: Sequence[str], parents: dict[str, set[str]]) -> list[str]:
    ordered: list[str] = []
    waiting = list(names)
    while waiting:
        ready = [name for name in waiting if parents.get(name, set()) <= {*ordered, name}] or waiting
        ordered += ready
        waiting = [name for name in waiting if name not in ready]
    return ordered
