"""Whether a path still leads to the database file that was opened, and whether a log belongs to it.

SQLite finds the log of a database by its name alone. A log that another file has left there would be replayed
into this one and damage it.
"""

import os
import time
from contextlib import suppress
from pathlib import Path

from ...errors import FileReplacedError
from ..urls import sqlite_path
from .log_locks import Identity, is_used_for_another

_WAL_VERSIONS = b"\x02\x02"  # bytes 18 and 19 of a file in WAL mode
_DESCRIPTORS = ("/proc/self/fd", "/dev/fd")


def identity_of(path: str) -> Identity | None:
    """The device and the number of the file at a path; `None` if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def check_unchanged(path: str, opened: Identity) -> None:
    """Raise `FileReplacedError` if a path no longer leads to the file that was opened there."""
    found = identity_of(path)
    if found == opened:
        return
    happened = "deleted" if found is None else "replaced"
    raise FileReplacedError(
        f"{path} was {happened} while it was in use, so nothing is read from it or written to it any more:"
        " put the right file in its place (`recollect restore BACKUP`), then start this process again"
    )


def check_file_exists(url: str) -> None:
    """Raise `FileReplacedError` if a service that runs on a file has lost it: opening it would create it."""
    path = sqlite_path(url)
    if path is not None and identity_of(path) is None:
        raise FileReplacedError(f"{path} was deleted while it was in use: run `recollect restore BACKUP`")


def check_file_of_log(path: str) -> None:
    """Raise `FileReplacedError` if there is a log and no file to which it can belong."""
    if _size_of(f"{path}-wal") and not _size_of(path):
        raise FileReplacedError(
            f"{path} is missing or empty, but its log {path}-wal is there: put the file back,"
            " or run `recollect restore BACKUP`, which keeps the log aside"
        )


def check_log(path: str) -> None:
    """Raise `FileReplacedError` if the log at a path belongs to another file.

    A file in WAL mode says so in its header before it has a log, and a backup of ours is not in WAL mode. So
    a log beside a file that is not in WAL mode is that of the file that was there before. Call this after a
    connection was made and before its first statement, which would open the log.
    """
    _check_users_of_log(path)
    if not _size_of(f"{path}-wal"):
        return
    versions = _read_versions(path)
    if versions is not None and versions != _WAL_VERSIONS:
        raise FileReplacedError(
            f"{path} was replaced, and {path}-wal is the log of the file that was there before, which would"
            " damage this one: put the file in its place with `recollect restore BACKUP`,"
            " or move the log away first"
        )


def _check_users_of_log(path: str) -> None:
    database = identity_of(path)
    try:
        log = os.open(f"{path}-wal", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if database is not None and is_used_for_another(log, database):
            raise FileReplacedError(
                f"{path} was replaced, but processes still use the file that was there before, and its log:"
                " stop them first"
            )
    finally:
        os.close(log)


def _read_versions(path: str) -> bytes | None:
    """Bytes 18 and 19 of a file that SQLite has open in this process; `None` if they cannot be read.

    They are read through the descriptor of SQLite. Closing one of our own would drop the locks that SQLite
    holds on the file in this process.
    """
    wanted = identity_of(path)
    folder = next((each for each in _DESCRIPTORS if os.path.isdir(each)), None)
    for name in os.listdir(folder) if folder else ():
        with suppress(OSError):
            status = os.fstat(int(name))
            if (status.st_dev, status.st_ino) == wanted:
                return os.pread(int(name), 2, 18)
    return None


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def set_log_aside(path: str, opened: Identity, log: Identity) -> None:
    """Rename the log of a file that was replaced, so that nobody reads it as the log of the new file.

    Does nothing if the file was deleted: a log without a file keeps the next process from starting with an
    empty one. Renaming loses nothing, because the contents of the log belong to the old file.
    """
    if identity_of(path) in (None, opened) or identity_of(f"{path}-wal") != log:
        return
    aside = f"{path}.replaced-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    for end in ("-shm", "-wal"):  # the log last: while it is there, a new opener finds out that it is foreign
        with suppress(OSError):
            Path(f"{path}{end}").rename(f"{aside}{end}")
