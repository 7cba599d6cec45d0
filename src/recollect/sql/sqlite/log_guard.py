"""Makes a log durable before the process that opens it reads or acknowledges anything.

With `synchronous=FULL`, SQLite flushes a commit before anybody sees it. A crash is the exception: the process
that opens the log next takes every complete commit in it as done, also one that was never flushed, or whose
flush has failed. A flush of our own is not enough then. After a failed flush the kernel takes for stored what
it could not store, so the next flush succeeds without it. A power cut would leave a hole, and SQLite reads no
log beyond a hole: everything that was acknowledged behind it would be lost. So the process that opens a log
alone writes the whole log once more, with the same content, and flushes it. Moving the log into the file
instead would not do: a power cut in between leaves a file with newer pages beside a log with older ones.

A process that has done this holds a shared lock on the log for as long as it has the file open. Others that
open the log meanwhile can rely on it and write nothing.
"""

import errno
import os
import sqlite3
import threading
from contextlib import suppress

from . import log_locks
from .connection import wait_for_lock
from .file_identity import set_log_aside
from .log_locks import Identity

_CHUNK = 2**20

_flush = getattr(os, "fdatasync", os.fsync)


class LogGuard:
    """The lock of this process on the log of one file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: int | None = None
        self._opened: Identity | None = None
        self._changing = threading.Lock()

    @property
    def is_held(self) -> bool:
        """Whether the log is durable, and this process holds the lock that says so."""
        return self._file is not None

    def secure(self, connection: sqlite3.Connection, opened: Identity, timeout: float) -> None:
        """Make the log durable. The connection has opened the log, so it stays the same file.

        Raises a busy error if another writer holds the write lock for longer than the timeout.
        """
        with self._changing:
            self._release()
            try:
                file = os.open(f"{self._path}-wal", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            except OSError:  # there is no log, or it can only be read
                return
            try:
                self._secure(file, connection, opened, timeout)
            except BaseException:
                os.close(file)
                raise
            self._file, self._opened = file, opened

    def flush(self, connection: sqlite3.Connection, opened: Identity) -> None:
        """Make the log durable without waiting for other writers, for a process that reads.

        If another writer holds the write lock, or the file is read-only, the log is flushed, but not written
        again: a hole that a failed flush has left stays until `secure`, before the first write.
        """
        try:
            self.secure(connection, opened, 0.0)
        except sqlite3.OperationalError:
            file = os.open(f"{self._path}-wal", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                _flush(file)
            finally:
                os.close(file)

    def release(self) -> None:
        """Give the lock up, because this process closes the file. A log of a replaced file is set aside."""
        with self._changing:
            self._release()

    def _release(self) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        with suppress(OSError):
            status = os.fstat(file)
            if self._opened is not None:
                set_log_aside(self._path, self._opened, (status.st_dev, status.st_ino))
        os.close(file)

    def _secure(self, file: int, connection: sqlite3.Connection, opened: Identity, timeout: float) -> None:
        if not log_locks.take_alone(file, opened):
            log_locks.share(file, opened)  # waits for a process that is writing the log again
            return
        if os.fstat(file).st_size:
            wait_for_lock(lambda: connection.execute("BEGIN IMMEDIATE"), timeout)
            try:
                _write_again(file)
            finally:
                connection.execute("ROLLBACK")
        log_locks.share(file, opened)


def _write_again(file: int) -> None:
    """Write the whole log once more with the same content, and flush it. The caller has the write lock."""
    for start in range(0, os.fstat(file).st_size, _CHUNK):
        content = os.pread(file, _CHUNK, start)
        if os.pwrite(file, content, start) < len(content):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
    _flush(file)
