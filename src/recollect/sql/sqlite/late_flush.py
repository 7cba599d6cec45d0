"""The connection that writes. Where processes queue, it flushes a commit after the next one may write.

SQLite flushes the log while it has the write lock, so of several processes one at a time waits for the disk,
and all others wait for it. A connection that flushes late commits without a flush, lets the next one write,
and flushes then. The kernel flushes for several processes at once.
"""

import os
import sqlite3
from contextlib import suppress

_FULL = 2  # the level at which SQLite flushes each commit


class WriterConnection(sqlite3.Connection):
    """A connection whose commits can be flushed after the write lock is free again.

    Until `flush` has returned, a power cut may undo a commit, so nobody may be told that it is stored. The
    log is one sequence: what others have committed before is flushed with it, so no commit outlives one that
    it was based on.
    """

    _log: int | None = None

    def flush_late(self, path: str) -> None:
        """Leave flushing to `flush`. Nothing changes if commits are not flushed, or the log cannot be opened.

        The connection has used the log, so the name leads to the same file until the connection is closed.
        """
        if self._log is not None or self.execute("PRAGMA synchronous").fetchone() != (_FULL,):
            return
        with suppress(OSError):
            self._log = os.open(f"{path}-wal", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            # SQLite still flushes the log before it moves it into the file and uses it again.
            self.execute("PRAGMA synchronous=NORMAL")

    def flush(self) -> None:
        """Make all commits until now survive a power cut. Raises `OSError` if the disk refuses."""
        if self._log is not None:
            os.fdatasync(self._log)

    def close(self) -> None:
        """Close the connection. An open transaction is rolled back."""
        super().close()
        log, self._log = self._log, None
        if log is not None:
            os.close(log)
