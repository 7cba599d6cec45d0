"""What a database server said, as one of our errors, with its own as the cause."""

from sqlalchemy import exc

from ...errors import (
    AccessDeniedError,
    ConnectionLostError,
    DatabaseBusyError,
    DiskFullError,
    MissingTablesError,
    ReadOnlyError,
    StorageError,
    TransientError,
    UnreachableError,
)

# SQLSTATE codes and classes of PostgreSQL, and what they mean to a caller.
_BY_STATE: dict[str, tuple[type[StorageError], str]] = {
    "42P01": (
        MissingTablesError,
        "the tables are not there; run `recollect migrate`, or pass create_tables=True",
    ),
    "28": (AccessDeniedError, "the server refused the user or the password"),
    "3D": (AccessDeniedError, "the database does not exist"),
    "42501": (AccessDeniedError, "the user may not do this"),
    "25006": (ReadOnlyError, "the database is read-only"),
    "53100": (DiskFullError, "the server's disk is full; nothing was written"),
    "53300": (DatabaseBusyError, "the server has no connection left"),
    "40": (TransientError, "the transaction met another and was rolled back"),
    "55P03": (DatabaseBusyError, "others held the session too long"),
    "57P03": (UnreachableError, "the server is starting up or shutting down"),
    "57P": (ConnectionLostError, "the server ended the connection"),
    "08": (ConnectionLostError, "the connection was lost"),
}


def explain_connecting(error: BaseException, where: str) -> BaseException:
    """An error from before anything was sent: nothing was written."""
    if isinstance(error, exc.TimeoutError):
        return _caused(DatabaseBusyError(f"{where}: all connections of the pool are in use"), error)
    explained = explain(error, where)
    if isinstance(explained, ConnectionLostError) or isinstance(error, OSError | TimeoutError):
        return _caused(UnreachableError(f"{where}: no connection can be made"), error)
    return explained


def explain(error: BaseException, where: str) -> BaseException:
    """The error as one of ours; what is no database error stays as it is."""
    if isinstance(error, StorageError):
        return error
    if isinstance(error, exc.DBAPIError):
        return _caused(_of_driver(error, where), error)
    if isinstance(error, exc.SQLAlchemyError):
        return _caused(StorageError(f"{where}: {type(error).__name__}"), error)
    if isinstance(error, OSError | TimeoutError):
        return _caused(ConnectionLostError(f"{where}: the connection was lost or took too long"), error)
    # Drivers may fail to connect with errors of their own that SQLAlchemy does not wrap.
    state = getattr(error, "sqlstate", None)
    return _caused(_of_state(state, error, where), error) if isinstance(state, str) else error


def _of_driver(error: exc.DBAPIError, where: str) -> StorageError:
    state = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
    if state:
        return _of_state(str(state), error.orig, where)
    message = str(error.orig)
    if error.connection_invalidated or "closed" in message:
        return ConnectionLostError(f"{where}: the connection was lost")
    if "no such table" in message:
        return MissingTablesError(f"{where}: {_BY_STATE['42P01'][1]}")
    if "locked" in message:
        return DatabaseBusyError(f"{where} was in use by others for too long; nothing was written")
    return StorageError(f"{where}: {message}")


def _of_state(state: str, error: object, where: str) -> StorageError:
    for length in (5, 3, 2):
        if found := _BY_STATE.get(state[:length]):
            kind, meaning = found
            return kind(f"{where}: {meaning}")
    return StorageError(f"{where}: {type(error).__name__} ({state})")


def _caused(explained: StorageError, cause: BaseException) -> StorageError:
    explained.__cause__ = cause
    return explained
