"""The queue of the processes that write to one file.

SQLite has no queue: a process that finds the write lock taken sleeps and asks again, and whoever asks at the
right moment gets it. Busy processes starve the others that way. So processes that have met queue up: each
takes the place at the front, waits there until it is its turn, and lets the next one to the front. The kernel
wakes those who wait in the order in which they came, and a process that has just written cannot pass the one
at the front.

The place at the front and the turn are locks on two bytes of the write-ahead log, far beyond its end. SQLite
itself never locks that file, so the queue needs no file of its own. The kernel drops the locks of a process
that dies. The queue decides who asks SQLite next and nothing else: the write lock of SQLite still protects
the data. So a process that does not queue does no harm: it is not ours, or its patience has ended, or its
system has no such locks.
"""

import logging
import os
import struct
import threading
from contextlib import suppress

# Locks of an open file, which two engines of one process do not share. Only Linux has them.
_LOCK: int | None = None
_LOCK_AND_WAIT: int | None = None
with suppress(ImportError):  # Windows
    import fcntl

    _LOCK = getattr(fcntl, "F_OFD_SETLK", None)
    _LOCK_AND_WAIT = getattr(fcntl, "F_OFD_SETLKW", None)

PATIENCE = 1.0
"""Seconds to wait for a turn. A process that has been stopped may keep it for as long as it likes."""

_FRONT = 2**62
_TURN = _FRONT + 1

logger = logging.getLogger(__name__)


class Turns:
    """The turns of one writer. It takes none until it has joined the queue."""

    def __init__(self, path: str) -> None:
        self._log = f"{path}-wal"
        self._place: _Place | None = None

    def join(self) -> None:
        """Join the queue. The caller has a connection, so that the log stays the same file."""
        if self._place is None and _LOCK is not None:
            try:
                self._place = _Place(os.open(self._log, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW))
            except OSError as error:
                logger.debug("writing without a queue (%s)", type(error).__name__)

    def try_enter(self) -> bool:
        """Take a turn if nobody waits for one. `True` also if there is no queue to wait in."""
        if self._place is None:
            return True
        try:
            return self._place.try_enter()
        except OSError as error:  # a file system without such locks
            logger.debug("writing without a queue (%s)", type(error).__name__)
            self.leave()
            return True

    def wait(self, timeout: float) -> None:
        """Wait for a turn. Returns without one after the timeout, and never waits longer than `PATIENCE`."""
        if self._place is not None:
            self._place.wait(min(timeout, PATIENCE))

    def end(self) -> None:
        """Let the next process write."""
        if self._place is not None:
            self._place.end()

    def leave(self) -> None:
        """Leave the queue, with or without a turn."""
        place, self._place = self._place, None
        if place is not None:
            place.close()

    def forget(self) -> None:
        """Leave the queue in a forked child, without touching the locks: those are the parent's."""
        place, self._place = self._place, None
        if place is not None:
            place.forget()


class _Place:
    """A place in the queue. A wait in the kernel has no timeout, so a thread waits, and the writer for it."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._changing = threading.Lock()  # guards all that follows
        self._thread: threading.Thread | None = None
        self._has_turn = False
        self._waits = False  # the thread does, perhaps for a writer that has given up
        self._given_up = False
        self._closed = False
        self._asked = _locked()
        self._answered = _locked()

    def try_enter(self) -> bool:
        with self._changing:
            if not (self._has_turn or self._waits or self._closed):
                self._has_turn = self._take(and_wait=False)
            return self._has_turn

    def wait(self, timeout: float) -> None:
        with self._changing:
            if self._waits or self._closed or timeout <= 0:
                return  # whoever has made this process give up still has the turn
            self._waits = True
            self._start()
        self._asked.release()
        if not self._answered.acquire(timeout=timeout):
            self._give_up()

    def end(self) -> None:
        with self._changing:
            if self._has_turn and not self._closed:
                self._has_turn = False
                self._unlock(_TURN)

    def close(self) -> None:
        with self._changing:
            self._closed = True
            if self._thread is None:
                return os.close(self._file)  # drops the locks
            if self._has_turn:
                self._unlock(_TURN)
            # The thread closes the file, when it has stopped waiting.
            return self._answered.release() if self._is_awaited else self._asked.release()

    def forget(self) -> None:
        with suppress(OSError):
            os.close(self._file)

    @property
    def _is_awaited(self) -> bool:
        return self._waits and not self._given_up

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="recollect-turns", daemon=True)
            self._thread.start()

    def _give_up(self) -> None:
        with self._changing:
            self._given_up = self._waits
        if not self._given_up:
            self._answered.acquire()  # the answer came at the last moment

    # --- on the thread ---

    def _work(self) -> None:
        while self._serve():
            pass
        os.close(self._file)

    def _serve(self) -> bool:
        """Wait for a question and then for the turn. `False` if the place was closed."""
        self._asked.acquire()
        if self._closed:
            return False
        try:
            has_turn = self._take(and_wait=True)
        except OSError:  # the next `try_enter` gets it too
            has_turn = False
        with self._changing:
            self._answer(has_turn)
            return not self._closed

    def _answer(self, has_turn: bool) -> None:
        if self._is_awaited and not self._closed:
            self._has_turn = has_turn
            self._answered.release()
        elif has_turn:
            self._unlock(_TURN)
        self._waits = self._given_up = False

    # --- the locks ---

    def _take(self, and_wait: bool) -> bool:
        """Go to the front, take the turn, and let the next one to the front."""
        if not self._lock(_FRONT, and_wait):
            return False
        try:
            return self._lock(_TURN, and_wait)
        finally:
            self._unlock(_FRONT)

    def _lock(self, byte: int, and_wait: bool) -> bool:
        """`False` if another process has the lock, which may also be called a lack of permission."""
        try:
            self._set(_LOCK_AND_WAIT if and_wait else _LOCK, fcntl.F_WRLCK, byte)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _unlock(self, byte: int) -> None:
        with suppress(OSError):
            self._set(_LOCK, fcntl.F_UNLCK, byte)

    def _set(self, command: int | None, kind: int, byte: int) -> None:
        assert command is not None
        fcntl.fcntl(self._file, command, struct.pack("hhqqi0q", kind, os.SEEK_SET, byte, 1, 0))


def _locked() -> threading.Lock:
    """A lock that is held: whoever acquires it waits for a release."""
    lock = threading.Lock()
    lock.acquire()
    return lock
