"""The write-ahead log of a file, which is truncated when it grows too large.

SQLite moves the log into the file every thousand pages. It restarts the log only at a moment without readers.
With constant readers that moment never comes: the log grows, and it never shrinks again. So the writer
truncates a log that is too large. It waits only for reads that began before: later reads find all data in the
file and do not use the log.
"""

import logging
import os
import sqlite3
import time

LARGEST = 16 * 1024 * 1024
"""The size in bytes above which a log is truncated."""

# Seconds between two looks at the size. A look after each commit would make commits a quarter slower: after
# the times of a file were read, Linux stores exact ones at its next write (since 6.13).
_LOOK_AFTER = 0.05
_READER_TIMEOUT = 0.2  # seconds to wait for readers; writers wait meanwhile
_RETRY_AFTER = 1.0  # seconds until the next try if a reader took longer

logger = logging.getLogger(__name__)


class Log:
    """The log of one file, as its writer sees it."""

    def __init__(self, path: str) -> None:
        self._path = f"{path}-wal"
        self._not_before = 0.0

    def truncate_if_large(self, connection: sqlite3.Connection) -> None:
        """Truncate the log if it is too large. If a long read prevents that, a later call tries again."""
        now = time.monotonic()
        if now < self._not_before:
            return
        self._not_before = now + _LOOK_AFTER
        if self._size() > LARGEST and not truncate(connection, _READER_TIMEOUT):
            self._not_before = time.monotonic() + _RETRY_AFTER

    def _size(self) -> int:
        try:
            return os.stat(self._path).st_size
        except OSError:  # the file was deleted, and the log with it
            return 0


def truncate(connection: sqlite3.Connection, timeout: float) -> bool:
    """Move the log into the file and empty it. `False` if others use it for longer than the timeout."""
    try:
        connection.execute(f"PRAGMA busy_timeout={int(timeout * 1000)}")
        try:
            ((is_busy, *_),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            connection.execute("PRAGMA busy_timeout=0")
    except sqlite3.Error as error:  # a log that stays large loses no data
        logger.warning("truncating a write-ahead log failed (%s)", type(error).__name__)
        return False
    return not is_busy
