"""Locks on a log, which say that processes use it, and for which database file.

The position of the lock is the number of the database file. So a process that finds a lock at another
position knows that the log is in use by processes that have opened another file under the same name. The
locks belong to an open file and are far beyond the end of the log, as those of the queue (`turns.py`). Only
Linux has them.
"""

import os
import struct
from contextlib import suppress

Identity = tuple[int, int]
"""The device and the number of a file."""

_LOCK: int | None = None
_LOCK_AND_WAIT: int | None = None
_FIND: int | None = None
with suppress(ImportError):  # Windows
    import fcntl

    _control = fcntl.fcntl
    _LOCK = getattr(fcntl, "F_OFD_SETLK", None)
    _LOCK_AND_WAIT = getattr(fcntl, "F_OFD_SETLKW", None)
    _FIND = getattr(fcntl, "F_OFD_GETLK", None)

_FIRST = 2**62 + 16  # beyond the locks of the queue
_COUNT = 2**61
_FLOCK = "hhqqi0q"


def take_alone(log: int, database: Identity) -> bool:
    """Take the lock alone; `False` if another process has it. `True` also where there are no such locks."""
    try:
        _set(log, _LOCK, "F_WRLCK", database)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # a file system without such locks
        return True
    return True


def share(log: int, database: Identity) -> None:
    """Share the lock with other processes until the log is closed. Waits for one that has it alone."""
    with suppress(OSError):
        _set(log, _LOCK_AND_WAIT, "F_RDLCK", database)


def is_used_for_another(log: int, database: Identity) -> bool:
    """Whether a process uses the log for another database file than this."""
    byte = _byte_of(database)
    return _is_locked(log, _FIRST, byte - _FIRST) or _is_locked(log, byte + 1, _FIRST + _COUNT - byte - 1)


def _byte_of(database: Identity) -> int:
    return _FIRST + database[1] % _COUNT


def _is_locked(log: int, start: int, length: int) -> bool:
    if _FIND is None or length <= 0:
        return False
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
    try:
        (kind, *_) = struct.unpack(_FLOCK, _control(log, _FIND, asked))
    except OSError:
        return False
    return bool(kind != fcntl.F_UNLCK)


def _set(log: int, command: int | None, kind: str, database: Identity) -> None:
    if command is not None:
        lock = struct.pack(_FLOCK, getattr(fcntl, kind), os.SEEK_SET, _byte_of(database), 1, 0)
        _control(log, command, lock)
