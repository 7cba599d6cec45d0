"""Errors of databases translated to ours, with the original as the cause."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from sqlalchemy import exc

from ...errors import (
    AccessDeniedError,
    ConnectionLostError,
    DatabaseBusyError,
    DiskFullError,
    MissingTablesError,
    NotADatabaseError,
    ReadOnlyError,
    SchemaMismatchError,
    StatementRefusedError,
    StorageError,
    TransactionConflictError,
    UnreachableError,
)
from ..sqlite.connection import explain as explain_sqlite

Meaning: TypeAlias = tuple[type[StorageError], str]
Explain: TypeAlias = Callable[[BaseException, str], BaseException]

_MISSING_TABLES = (
    MissingTablesError,
    "the tables do not exist; run `recollect migrate`, or pass create_tables=True",
)
_SCHEMA_MISMATCH = (
    SchemaMismatchError,
    "the tables do not fit this version; `recollect migrate` may update them",
)
_REFUSED = (AccessDeniedError, "the server rejected the user or the password")
_NO_DATABASE = (NotADatabaseError, "no database of that name exists")
_READ_ONLY = (ReadOnlyError, "the database is read-only")
_DISK_FULL = (DiskFullError, "the server's disk is full; nothing was written")
_NO_CONNECTION_LEFT = (DatabaseBusyError, "the server accepts no more connections")
_LOCK_TIMEOUT = (DatabaseBusyError, "another transaction held a lock for too long; nothing was written")
_CONFLICT = (TransactionConflictError, "the transaction was rolled back because of a conflict with another")
_STARTING = (UnreachableError, "the server is starting up or shutting down")
_NOT_PREPARED = (
    StatementRefusedError,
    "prepared statements are lost between here and the server; turn them off: behind PgBouncer, pass"
    ' engine_kwargs={"connect_args": {"statement_cache_size": 0}} for asyncpg',
)
_NO_CONNECTION = (UnreachableError, "no connection can be made")
_NO_PRIMARY = (UnreachableError, "no host accepts writes: all that answer are standbys")
_LOST = (ConnectionLostError, "the connection was lost")
_TOO_LATE = (ConnectionLostError, "the server did not answer in time")

# By SQLSTATE, whole or by its first characters: PostgreSQL, and servers that speak its protocol.
_BY_STATE: dict[str, Meaning] = {
    "42P01": _MISSING_TABLES,
    "42703": _SCHEMA_MISMATCH,
    "42804": _SCHEMA_MISMATCH,
    "42883": _SCHEMA_MISMATCH,
    "26000": _NOT_PREPARED,
    "42P05": _NOT_PREPARED,
    "28": _REFUSED,
    "3D": _NO_DATABASE,
    "42501": (AccessDeniedError, "the user lacks the permission for this"),
    "25006": _READ_ONLY,
    "25P03": (
        ConnectionLostError,
        "the process paused for too long in a transaction, and the server ended it",
    ),
    "53100": _DISK_FULL,
    "53300": _NO_CONNECTION_LEFT,
    "40": _CONFLICT,
    "55P03": _LOCK_TIMEOUT,
    "57014": _LOCK_TIMEOUT,
    "57P03": _STARTING,
    "57P": _LOST,
    "08": _LOST,
}

# By number: MySQL and MariaDB.
_BY_NUMBER: dict[int, Meaning] = {
    1146: _MISSING_TABLES,
    1054: _SCHEMA_MISMATCH,
    1044: _REFUSED,
    1045: _REFUSED,
    1698: _REFUSED,
    1049: _NO_DATABASE,
    1142: (AccessDeniedError, "the user lacks the permission for this"),
    1290: _READ_ONLY,
    1792: _READ_ONLY,
    1021: _DISK_FULL,
    1114: _DISK_FULL,
    1040: _NO_CONNECTION_LEFT,
    1203: _NO_CONNECTION_LEFT,
    1205: _LOCK_TIMEOUT,
    1213: _CONFLICT,
    1406: (StatementRefusedError, "an id is longer than its column"),
}

_CLIENT_NUMBERS = range(2000, 3000)  # errors of the client library, not of the server

# By words of the message: libpq when it cannot connect, asyncpg, and SQLite.
_LIBPQ_WORDS: dict[str, Meaning] = {
    "authentication failed": _REFUSED,
    "no password supplied": _REFUSED,
    "pg_hba.conf": _REFUSED,
    'role "': _REFUSED,
    'database "': _NO_DATABASE,
    "too many": _NO_CONNECTION_LEFT,
    "connection slots": _NO_CONNECTION_LEFT,
    "target attribute requirement": _NO_PRIMARY,
    "session is read-only": _NO_PRIMARY,
    "server is in hot standby mode": _NO_PRIMARY,
}
# A column of times is still a text: asyncpg refuses the parameter.
_ASYNCPG_WORDS: dict[str, Meaning] = {"expected str, got datetime": _SCHEMA_MISMATCH}
_SQLITE_WORDS: dict[str, Meaning] = {
    "no such table": _MISSING_TABLES,
    "no such column": _SCHEMA_MISMATCH,
    "has no column": _SCHEMA_MISMATCH,
}

_PACKAGES = ("asyncpg", "psycopg", "sqlalchemy", "aiosqlite", "aiomysql", "asyncmy", "pymysql")
_CONNECTION_ERRORS = ("InterfaceError", "OperationalError", "InternalClientError")

_UNFIT_PARAMETER = "22000"
_QUOTING = ("22", "23")  # states whose messages may quote contents


@contextmanager
def explained(where: str, explain: Explain) -> Iterator[None]:
    """Translate errors of a database that are raised in the block to ours."""
    try:
        yield
    except Exception as error:
        ours = explain(error, where)
        if ours is error:
            raise
        raise ours from _cause(error)


def explain_connecting(error: BaseException, where: str) -> BaseException:
    """One of our errors for one raised while connecting. Returns other errors as they are."""
    if isinstance(error, exc.TimeoutError):
        return DatabaseBusyError(f"{where}: all connections of the pool are in use")
    ours = explain(error, where)
    if not isinstance(ours, ConnectionLostError):
        return ours
    kind, meaning = _by_words(str(error), _LIBPQ_WORDS) or _NO_CONNECTION
    return kind(f"{where}: {meaning}")


def explain(error: BaseException, where: str) -> BaseException:
    """One of our errors for an error of a database. Returns other errors as they are."""
    original = getattr(error, "orig", None) or error  # SQLAlchemy may have wrapped it
    if isinstance(original, sqlite3.Error):
        return _explain_sqlite(original, where)
    if isinstance(original, StorageError) or not _is_database_error(original):
        return error
    kind, meaning = _meaning(original)
    return kind(f"{where}: {meaning}")


def _cause(error: BaseException) -> BaseException | None:
    """The error itself, unless its text may quote contents."""
    state = _state_of(getattr(error, "orig", None) or error) or ""
    return None if state.startswith(_QUOTING) else error


def _meaning(error: BaseException) -> Meaning:
    name = type(error).__name__
    if isinstance(error, OSError):
        return _TOO_LATE if isinstance(error, TimeoutError) else _LOST
    number = error.args[0] if error.args else None
    if isinstance(number, int):
        of_client = number in _CLIENT_NUMBERS
        return _BY_NUMBER.get(number) or (
            _LOST if of_client else (StatementRefusedError, f"{name} ({number})")
        )
    state = _state_of(error)
    if state == _UNFIT_PARAMETER and (found := _by_words(str(error), _ASYNCPG_WORDS)):
        return found
    if state is not None:
        found = next((_BY_STATE[state[:n]] for n in (5, 3, 2) if state[:n] in _BY_STATE), None)
        return found or (StatementRefusedError, f"{name} ({state})")
    # Without an error of the server it is the connection: whether the server has committed is unknown.
    of_connection = any(kind.__name__ in _CONNECTION_ERRORS for kind in type(error).__mro__)
    return _LOST if of_connection else (StatementRefusedError, name)


def _state_of(error: BaseException) -> str | None:
    state = getattr(error, "sqlstate", None)
    return state if isinstance(state, str) else None


def _is_database_error(error: BaseException) -> bool:
    return isinstance(error, OSError) or type(error).__module__.split(".")[0] in _PACKAGES


def _explain_sqlite(error: sqlite3.Error, where: str) -> BaseException:
    found = _by_words(str(error), _SQLITE_WORDS)
    if found is None:
        return explain_sqlite(error, where)
    kind, meaning = found
    return kind(f"{where}: {meaning}")


def _by_words(message: str, meanings: dict[str, Meaning]) -> Meaning | None:
    return next((meaning for words, meaning in meanings.items() if words in message), None)
