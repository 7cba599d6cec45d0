"""Connections to a SQLite file: how they are opened, run scripts, wait for locks, and report errors."""

import os
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from ...errors import (
    ConnectionLostError,
    DatabaseBusyError,
    DiskFullError,
    NotADatabaseError,
    ReadOnlyError,
    StatementRefusedError,
    StorageError,
)
from ...private_files import create_private
from ..scripts import Row, Script, Statement
from .file_identity import check_file_of_log, check_log

T = TypeVar("T")

FAULTS = (sqlite3.Error, OSError, MemoryError, UnicodeDecodeError)
"""Errors of a database. A damaged file may also demand too much memory, or hold bytes that are no text."""

_DAMAGED = "the file is damaged"
_QUOTING = "Could not decode"  # the beginning of an error of sqlite3 that goes on to quote the stored bytes
_FIRST_WAIT = 0.0002
_LONGEST_WAIT = 0.01


@dataclass(frozen=True)
class EngineOptions:
    """Options of a database file. Sessions with the same file and options share one engine."""

    durability: Literal["full", "normal"] = "full"
    busy_timeout: float = 60.0

    def __post_init__(self) -> None:
        if self.durability not in ("full", "normal"):
            raise ValueError(f"durability must be 'full' or 'normal', not {self.durability!r}")
        if not self.busy_timeout >= 0:
            raise ValueError(f"busy_timeout must be 0 or more seconds, not {self.busy_timeout!r}")


def connect_file(path: str) -> sqlite3.Connection:
    """A connection without settings to a file, which is created with mode 0600 if it does not exist."""
    check_file_of_log(path)
    create_private(path)
    return _connect_checked(path)


def _connect_checked(path: str) -> sqlite3.Connection:
    connection = connect(path)
    try:
        check_log(path)
    except BaseException:
        connection.close()
        raise
    return connection


class ImmutableConnection(sqlite3.Connection):
    """A connection that does not see later changes of the file. Use it for one read only."""


def connect_reader(
    path: str, connect_usually: Callable[[str], sqlite3.Connection] = connect_file
) -> sqlite3.Connection:
    """A connection that reads a file, even in a folder that is read-only.

    To read a file in WAL mode, SQLite needs to write a shared index beside it. Where it cannot, and there is
    no log, the file alone holds all data and is opened as immutable. If there is a log, raises
    `ReadOnlyError`.
    """
    connection = connect_usually(path)
    try:
        _open_log(connection)
    except sqlite3.Error as error:
        if not (_cannot_write_beside(error) and os.path.isfile(path)):
            return connection  # the first read raises the error again
        connection.close()
        return _connect_immutable(path)
    return connection


def _cannot_write_beside(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def _connect_immutable(path: str) -> sqlite3.Connection:
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size:
        raise ReadOnlyError(
            f"{path} has a write-ahead log, which SQLite can read only if the folder is writable:"
            " copy both files to a writable folder"
        )
    address = f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1"
    return sqlite3.connect(
        address,
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        factory=ImmutableConnection,
    )


def connect(path: str) -> sqlite3.Connection:
    """A connection without settings. It never waits for a lock inside SQLite: use `wait_for_lock`."""
    return sqlite3.connect(
        path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=256
    )


def connect_writer(path: str, options: EngineOptions) -> sqlite3.Connection:
    """The connection that writes, with WAL, foreign keys, and the durability of the options."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    connection = connect_file(path)
    try:
        # Switching to WAL needs an exclusive lock for a moment, and ignores SQLite's own timeout.
        wait_for_lock(lambda: connection.execute("PRAGMA journal_mode=WAL"), options.busy_timeout)
        wait_for_lock(partial(_open_log, connection), options.busy_timeout)
        connection.execute(f"PRAGMA synchronous={options.durability.upper()}")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA secure_delete=ON")  # deleted rows are overwritten, not only unlinked
    except BaseException:
        connection.close()
        raise
    return connection


def _open_log(connection: sqlite3.Connection) -> None:
    """Read something: SQLite opens the log no sooner."""
    connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()


def execute(connection: sqlite3.Connection, statement: Statement) -> list[Row]:
    """Run one statement and fetch all its rows."""
    try:
        return connection.execute(statement.sql, statement.parameters).fetchall()
    except (MemoryError, UnicodeDecodeError) as error:  # raised here, they mean that the file is damaged
        raise sqlite3.DatabaseError(_DAMAGED) from error


class UnconfirmedCommitError(Exception):
    """The disk failed during a commit. Nobody sees the commit now, but recovery after a crash may find it."""


def commit(connection: sqlite3.Connection) -> None:
    """Commit. Raises `UnconfirmedCommitError` if the disk fails meanwhile."""
    try:
        connection.commit()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_IOERR:
            raise UnconfirmedCommitError from error
        raise


def run_script(connection: sqlite3.Connection, script: Script[T]) -> T:
    """Run a script to its end and return its result. The caller has begun the transaction."""
    try:
        statement = next(script)
        while True:
            statement = script.send(execute(connection, statement))
    except StopIteration as finished:
        result: T = finished.value
        return result
    finally:
        script.close()


def is_busy(error: Exception) -> bool:
    """Whether the error means that another connection holds a lock that this one needs."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def wait_for_lock(
    attempt: Callable[[], T],
    timeout: float,
    between: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> T:
    """Call `attempt` until the lock that it needs is free, or the timeout has passed.

    `between` is entered while it sleeps. The waits are short and random: SQLite's own waits grow to 100 ms,
    which starves a process that competes with busy ones.
    """
    deadline = time.monotonic() + timeout
    wait = _FIRST_WAIT
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
        with between():
            time.sleep(random.uniform(wait / 2, wait))
        wait = min(wait * 2, _LONGEST_WAIT)


def explain(error: BaseException, path: str) -> BaseException:
    """One of our errors, caused by SQLite's. Returns an error that is not the database's as it is."""
    if isinstance(error, OSError):
        explained: StorageError = NotADatabaseError(f"cannot open {path}: {error.strerror or error}")
    elif isinstance(error, MemoryError | UnicodeDecodeError):
        explained = StatementRefusedError(f"{path}: {_DAMAGED}")
    elif not isinstance(error, sqlite3.Error):
        return error
    else:
        redact_contents(error)
        explained = _explain_code(getattr(error, "sqlite_errorcode", 0) & 0xFF, str(error), path)
    explained.__cause__ = error
    return explained


def explain_unconfirmed(error: UnconfirmedCommitError, path: str) -> ConnectionLostError:
    """The error for the caller of a write whose commit the disk has not confirmed."""
    explained = ConnectionLostError(f"{path}: the disk did not confirm the write; it may be stored or lost")
    explained.__cause__ = error.__cause__
    return explained


def redact_contents(error: BaseException) -> None:
    """Remove stored contents from the message of an error, because it may be logged."""
    if str(error).startswith(_QUOTING):
        error.args = (_DAMAGED,)


def _explain_code(code: int, message: str, path: str) -> StorageError:
    match code:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return DatabaseBusyError(f"{path} was locked by other writers for too long; nothing was written")
        case sqlite3.SQLITE_FULL:
            return DiskFullError(f"no space left to write to {path}; nothing was written")
        case sqlite3.SQLITE_READONLY:
            return ReadOnlyError(f"{path} cannot be written to: {message}")
        case sqlite3.SQLITE_CANTOPEN:
            return NotADatabaseError(f"cannot open {path}: it is a folder, or may not be accessed")
        case sqlite3.SQLITE_NOTADB:
            return NotADatabaseError(f"{path} is not a SQLite database")
        case _:
            return StatementRefusedError(f"{path}: {message}")
