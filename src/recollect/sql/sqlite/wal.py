"""Keeping the write-ahead log of a file small.

SQLite moves the log into the file every thousand pages, and begins it anew when nobody reads from it at that
moment. Where there are always some who read, that moment never comes, and the log grows; and once it has
grown, it stays as large. So a log that is too large is cut off here: whoever begins to read then finds all in
the file and does not need the log, so only those are waited for who have begun before.
"""

import logging
import os
import sqlite3
import time

LARGEST = 16 * 1024 * 1024
"""Bytes that a log may have, before it is cut off."""

_PATIENCE = 0.2  # seconds to wait for readers; those who write wait meanwhile
_PAUSE = 1.0  # seconds until it is tried again, where a reader took longer

logger = logging.getLogger(__name__)


class Log:
    """The log of one file, as the one who writes sees it."""

    def __init__(self, path: str) -> None:
        self._path = f"{path}-wal"
        self._not_before = 0.0

    def tend(self, connection: sqlite3.Connection) -> None:
        """Cut the log off if it is too large, unless somebody reads from it for long: then later."""
        if self._size() <= LARGEST or time.monotonic() < self._not_before:
            return
        if not cut_off(connection, _PATIENCE):
            self._not_before = time.monotonic() + _PAUSE

    def _size(self) -> int:
        try:
            return os.stat(self._path).st_size
        except OSError:  # it is gone, with the file
            return 0


def cut_off(connection: sqlite3.Connection, patience: float) -> bool:
    """Move the log into the file and empty it; `False` if others read from it or write for longer."""
    try:
        connection.execute(f"PRAGMA busy_timeout={int(patience * 1000)}")
        try:
            ((is_busy, *_),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            connection.execute("PRAGMA busy_timeout=0")
    except sqlite3.Error as error:  # nothing is lost by a log that stays as it is
        logger.warning("the log of a database could not be emptied (%s)", type(error).__name__)
        return False
    return not is_busy
