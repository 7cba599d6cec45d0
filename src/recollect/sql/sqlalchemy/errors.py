"""What a database said, as one of our errors, with its own as the cause."""

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
    StorageError,
    TransientError,
    UnreachableError,
)
from ..sqlite.connection import explain as explain_sqlite

Meaning: TypeAlias = tuple[type[StorageError], str]
Explain: TypeAlias = Callable[[BaseException, str], BaseException]

_MISSING_TABLES = (
    MissingTablesError,
    "the tables are not there; run `recollect migrate`, or pass create_tables=True",
)
_ANOTHER_SHAPE = (
    SchemaMismatchError,
    "the tables have another shape; `recollect migrate` may bring it up to date",
)
_REFUSED = (AccessDeniedError, "the server refused the user or the password")
_NO_DATABASE = (NotADatabaseError, "there is no database of that name")
_READ_ONLY = (ReadOnlyError, "the database is read-only")
_DISK_FULL = (DiskFullError, "the server's disk is full; nothing was written")
_NO_CONNECTION_LEFT = (DatabaseBusyError, "the server has no connection left")
_HELD_TOO_LONG = (DatabaseBusyError, "others held the session too long; nothing was written")
_MET_ANOTHER = (TransientError, "the transaction met another and was rolled back")
_STARTING = (UnreachableError, "the server is starting up or shutting down")
_NOT_PREPARED = (
    StorageError,
    "prepared statements do not survive on the way to the server; turn them off: behind PgBouncer, pass"
    ' engine_kwargs={"connect_args": {"statement_cache_size": 0}} for asyncpg',
)
_NO_CONNECTION = (UnreachableError, "no connection can be made")
_LOST = (ConnectionLostError, "the connection was lost")
_TOO_LATE = (ConnectionLostError, "the server did not answer in time")

# By SQLSTATE, whole or by its first characters: PostgreSQL, and what speaks its protocol.
_BY_STATE: dict[str, Meaning] = {
    "42P01": _MISSING_TABLES,
    "42703": _ANOTHER_SHAPE,
    "42804": _ANOTHER_SHAPE,
    "42883": _ANOTHER_SHAPE,
    "26000": _NOT_PREPARED,
    "42P05": _NOT_PREPARED,
    "28": _REFUSED,
    "3D": _NO_DATABASE,
    "42501": (AccessDeniedError, "the user may not do this"),
    "25006": _READ_ONLY,
    "53100": _DISK_FULL,
    "53300": _NO_CONNECTION_LEFT,
    "40": _MET_ANOTHER,
    "55P03": _HELD_TOO_LONG,
    "57014": _HELD_TOO_LONG,
    "57P03": _STARTING,
    "57P": _LOST,
    "08": _LOST,
}

# By number: MySQL and MariaDB.
_BY_NUMBER: dict[int, Meaning] = {
    1146: _MISSING_TABLES,
    1054: _ANOTHER_SHAPE,
    1044: _REFUSED,
    1045: _REFUSED,
    1698: _REFUSED,
    1049: _NO_DATABASE,
    1142: (AccessDeniedError, "the user may not do this"),
    1290: _READ_ONLY,
    1792: _READ_ONLY,
    1021: _DISK_FULL,
    1114: _DISK_FULL,
    1040: _NO_CONNECTION_LEFT,
    1203: _NO_CONNECTION_LEFT,
    1205: _HELD_TOO_LONG,
    1213: _MET_ANOTHER,
    1406: (StorageError, "an id is longer than its column"),
}

_NUMBERS_OF_CLIENTS = range(2000, 3000)

# By what is said: libpq where it cannot connect, and SQLite.
_WORDS_OF_LIBPQ: dict[str, Meaning] = {
    "authentication failed": _REFUSED,
    "no password supplied": _REFUSED,
    "pg_hba.conf": _REFUSED,
    'role "': _REFUSED,
    'database "': _NO_DATABASE,
    "too many": _NO_CONNECTION_LEFT,
    "connection slots": _NO_CONNECTION_LEFT,
}
# A column of times is still text: asyncpg does not send the statement.
_WORDS_OF_ASYNCPG: dict[str, Meaning] = {"expected str, got datetime": _ANOTHER_SHAPE}
_WORDS_OF_SQLITE: dict[str, Meaning] = {
    "no such table": _MISSING_TABLES,
    "no such column": _ANOTHER_SHAPE,
    "has no column": _ANOTHER_SHAPE,
}

_PACKAGES = ("asyncpg", "psycopg", "sqlalchemy", "aiosqlite", "aiomysql", "asyncmy", "pymysql")
_OF_CONNECTIONS = ("InterfaceError", "OperationalError", "InternalClientError")

_UNFIT_PARAMETER = "22000"
_QUOTING = ("22", "23")  # states whose messages may quote what was to be stored


@contextmanager
def explained(where: str, explain: Explain) -> Iterator[None]:
    """Errors of a database that are raised within, as ours."""
    try:
        yield
    except Exception as error:
        ours = explain(error, where)
        if ours is error:
            raise
        raise ours from _cause(error)


def explain_connecting(error: BaseException, where: str) -> BaseException:
    """An error from before anything was sent, as one of ours; what no database said stays as it is."""
    if isinstance(error, exc.TimeoutError):
        return DatabaseBusyError(f"{where}: all connections of the pool are in use")
    ours = explain(error, where)
    if not isinstance(ours, ConnectionLostError):
        return ours
    kind, meaning = _by_words(str(error), _WORDS_OF_LIBPQ) or _NO_CONNECTION
    return kind(f"{where}: {meaning}")


def explain(error: BaseException, where: str) -> BaseException:
    """An error as one of ours; what no database said stays as it is."""
    original = getattr(error, "orig", None) or error  # SQLAlchemy may have wrapped it
    if isinstance(original, sqlite3.Error):
        return _of_sqlite(original, where)
    if isinstance(original, StorageError) or not _is_of_database(original):
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
        of_client = number in _NUMBERS_OF_CLIENTS
        return _BY_NUMBER.get(number) or (_LOST if of_client else (StorageError, f"{name} ({number})"))
    state = _state_of(error)
    if state == _UNFIT_PARAMETER and (found := _by_words(str(error), _WORDS_OF_ASYNCPG)):
        return found
    if state is not None:
        found = next((_BY_STATE[state[:n]] for n in (5, 3, 2) if state[:n] in _BY_STATE), None)
        return found or (StorageError, f"{name} ({state})")
    # Without a word of the server, it is the connection: nobody knows what the server has done.
    of_connection = any(kind.__name__ in _OF_CONNECTIONS for kind in type(error).__mro__)
    return _LOST if of_connection else (StorageError, name)


def _state_of(error: BaseException) -> str | None:
    state = getattr(error, "sqlstate", None)
    return state if isinstance(state, str) else None


def _is_of_database(error: BaseException) -> bool:
    return isinstance(error, OSError) or type(error).__module__.split(".")[0] in _PACKAGES


def _of_sqlite(error: sqlite3.Error, where: str) -> BaseException:
    found = _by_words(str(error), _WORDS_OF_SQLITE)
    if found is None:
        return explain_sqlite(error, where)
    kind, meaning = found
    return kind(f"{where}: {meaning}")


def _by_words(message: str, meanings: dict[str, Meaning]) -> Meaning | None:
    return next((meaning for words, meaning in meanings.items() if words in message), None)
