"""The connection that writes. It flushes a commit after the next process may write.

SQLite flushes the log while it has the write lock, so of several processes one at a time waits for the disk,
and all others wait for it. This connection commits without a flush, lets the next one write, and flushes
then. The kernel flushes for several processes at once.
"""

import errno
import os
import sqlite3
from contextlib import suppress
from typing import Any

_CHUNK = 1024 * 1024
_LOCK_TIMEOUT = 5.0  # seconds to wait for other writers before the log is written again


class WriterConnection(sqlite3.Connection):
    """A connection whose commits can be flushed after the write lock is free again.

    Until `flush` has returned, a power cut may undo a commit, so nobody may be told that it is stored. The
    log is one sequence: what others have committed before is flushed with it, so no commit outlives one that
    it was based on.
    """

    def __init__(self, path: str, *arguments: Any, **options: Any) -> None:
        super().__init__(path, *arguments, **options)
        self.is_torn = False
        """Whether a part of the log may not be on the disk, though it was flushed since."""
        self._log_path = f"{path}-wal"
        self._log: int | None = None
        self._has_committed = False  # what is not flushed yet

    def flush_late(self) -> None:
        """Leave flushing to `flush`. The connection has opened the log, so it stays the same file.

        SQLite goes on flushing each commit itself where the log cannot be opened (a file that can only be
        read), and on systems other than Linux.
        """
        with suppress(OSError):
            if hasattr(os, "fdatasync"):
                self._log = os.open(self._log_path, os.O_RDWR | os.O_CLOEXEC)
                # SQLite still flushes the log before it moves it into the file and uses it again.
                self.execute("PRAGMA synchronous=NORMAL")

    def commit(self) -> None:
        """Commit. It may take `flush` to survive a power cut."""
        super().commit()
        self._has_committed = True

    def flush(self) -> None:
        """Make what was committed survive a power cut. Raises if the disk refuses.

        A commit that has changed nothing is flushed too: what it has found, and its caller now relies on,
        another process may have committed and not flushed yet. If the disk refuses, what was committed is in
        doubt. What is committed after that is not.
        """
        has_committed, self._has_committed = self._has_committed, False
        if has_committed and self._log is not None:
            self._flush_log(self._log)

    def close(self) -> None:
        """Close the connection. An open transaction is rolled back."""
        super().close()
        log, self._log = self._log, None
        if log is not None:
            with suppress(OSError):
                os.close(log)

    def _flush_log(self, log: int) -> None:
        if self.is_torn:
            self._write_log_again(log)
            return
        try:
            os.fdatasync(log)
        except OSError:
            self.is_torn = True
            with suppress(OSError, sqlite3.Error):  # else the next flush does it
                self._write_log_again(log)
            raise

    def _write_log_again(self, log: int) -> None:
        """Write all of the log once more and flush it.

        A flush that fails leaves a hole: the kernel takes for stored what it has failed to store, and the
        next flush succeeds without it. After a power cut, SQLite would not read the log beyond that hole. The
        memory of the kernel still has the contents, except on some file systems (Btrfs).
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
        self.is_torn = False


def _write_again(log: int, start: int) -> None:
    content = os.pread(log, _CHUNK, start)
    if os.pwrite(log, content, start) < len(content):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
