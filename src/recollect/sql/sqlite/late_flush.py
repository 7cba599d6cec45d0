"""The connection that writes. Where processes queue, it flushes a commit after the next one may write.

SQLite flushes the log while it has the write lock, so of several processes one at a time waits for the disk,
and all others wait for it. A connection that flushes late commits without a flush, lets the next one write,
and flushes then. The kernel flushes for several processes at once.
"""

import errno
import logging
import os
import sqlite3
from contextlib import suppress
from typing import Any, Literal

_CHUNK = 1024 * 1024
_LOCK_TIMEOUT = 5.0  # seconds to wait for other writers before the log is written again

logger = logging.getLogger(__name__)


class WriterConnection(sqlite3.Connection):
    """A connection whose commits can be flushed after the write lock is free again.

    Until `flush` has returned, a power cut may undo a commit, so nobody may be told that it is stored. The
    log is one sequence: what others have committed before is flushed with it, so no commit outlives one that
    it was based on.
    """

    def __init__(self, path: str, *arguments: Any, **options: Any) -> None:
        super().__init__(path, *arguments, **options)
        self._log_path = f"{path}-wal"
        self._log: int | None = None
        self._is_durable = False
        self._is_late = False
        self._has_begun = False  # something that is not flushed yet
        self._changes_before = 0
        self._is_torn = False  # the log may have a part that is not on the disk, though it was flushed since

    def set_durability(self, durability: Literal["full", "normal"]) -> None:
        """Set whether commits survive a power cut."""
        self._is_durable = durability == "full"
        self.execute(f"PRAGMA synchronous={durability.upper()}")

    def flush_late(self) -> None:
        """Leave flushing to `flush`, if commits are flushed at all. The connection has used the log."""
        if self._is_durable and self._open_log() is not None:
            # SQLite still flushes the log before it moves it into the file and uses it again.
            self.execute("PRAGMA synchronous=NORMAL")
            self._is_late = True

    def begin(self) -> None:
        """Begin a transaction with the write lock."""
        self.execute("BEGIN IMMEDIATE")
        self._has_begun, self._changes_before = True, self.total_changes

    def flush(self) -> None:
        """Make what was committed since `begin` survive a power cut. Raises if the disk refuses.

        SQLite never flushes a transaction that has changed nothing. What it has found, and its caller now
        relies on, another process may have committed and not flushed yet.
        """
        has_begun, self._has_begun = self._has_begun, False
        is_left = self._is_late or self.total_changes == self._changes_before  # by SQLite
        if has_begun and is_left and self._is_durable:
            self._flush_log()

    def close(self) -> None:
        """Close the connection. An open transaction is rolled back."""
        super().close()
        log, self._log = self._log, None
        if log is not None:
            with suppress(OSError):
                os.close(log)

    def _open_log(self) -> int | None:
        """The log, which is the same file until the connection is closed. `None` if it cannot be opened."""
        if self._log is None and hasattr(os, "fdatasync"):  # without it, no process flushes late
            with suppress(OSError):
                self._log = os.open(self._log_path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        return self._log

    def _flush_log(self) -> None:
        log = self._open_log()
        if log is None:
            return
        if not self._is_torn:
            try:
                os.fdatasync(log)
            except OSError as error:
                logger.warning("a disk has refused to store a write-ahead log (%s)", error.strerror)
                self._is_torn = True
        if self._is_torn:
            self._write_log_again(log)
            self._is_torn = False

    def _write_log_again(self, log: int) -> None:
        """Write all of the log once more and flush it.

        A flush that fails leaves a hole: the kernel takes for stored what it has failed to store, and the
        next flush succeeds without it. SQLite would not read the log beyond that hole after a power cut.
        """
        self.execute(f"PRAGMA busy_timeout={int(_LOCK_TIMEOUT * 1000)}")
        try:
            self.execute("BEGIN IMMEDIATE")  # nobody else writes to the log now
            try:
                for start in range(0, os.fstat(log).st_size, _CHUNK):
                    _write_again(log, start)
                os.fdatasync(log)
            finally:
                self.execute("ROLLBACK")
        finally:
            self.execute("PRAGMA busy_timeout=0")


def _write_again(log: int, start: int) -> None:
    content = os.pread(log, _CHUNK, start)
    if os.pwrite(log, content, start) < len(content):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
