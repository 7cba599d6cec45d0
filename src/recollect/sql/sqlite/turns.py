"""The queue of the processes that write to one file.

SQLite has no queue: a process that finds the write lock taken sleeps and asks again, and whoever asks at the
right moment gets it. Busy processes starve the others that way. So processes queue up: each takes the place
at the front, waits there until it is its turn, and lets the next one to the front. The kernel wakes those who
wait in the order in which they came, and a process that has just written cannot pass the one at the front.

The place at the front and the turn are locks on two bytes of the write-ahead log, far beyond its end. SQLite
itself never locks that file, so the queue needs no file of its own. The kernel drops the locks of a process
that dies. The queue decides who asks SQLite next and nothing else: the write lock of SQLite still protects
the data. So a process that does not queue does no harm: it is not ours, or its patience has ended, or its
system has no such locks.
"""

import logging
import math
import os
import struct
import threading
import time
from collections.abc import Callable
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
        self._left_places: list[_Place] = []  # in which a thread still waits
        self._has_locks = _LOCK is not None

    def join(self) -> None:
        """Join the queue, if there is one. The caller has opened the log, so that it stays the same file."""
        if self._place is not None or not self._has_locks:
            return
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
            self._has_locks = False
            self.leave()
            return True

    def wait(self, timeout: float, on_late: Callable[[], None]) -> bool:
        """Wait for a turn; `False` if it came too late.

        A thread that waits in the kernel does not stop waiting before it has the turn. So if the turn does
        not come within the timeout or `PATIENCE`, `on_late` is called in another thread, which may continue
        the work of this one without a turn. Then this one gets `False`, however late, and has no turn.
        """
        place = self._place  # the caller has no lock here, and another thread may leave the queue
        return place is None or place.wait(min(timeout, PATIENCE), on_late)

    def end(self) -> None:
        """Let the next process write."""
        if self._place is not None:
            self._place.end()

    def leave(self) -> None:
        """Leave the queue, with or without a turn."""
        place, self._place = self._place, None
        if place is not None:
            place.close()
            self._left_places = [each for each in (*self._left_places, place) if each.is_waiting]

    def forget(self) -> None:
        """Leave the queue in a forked child, without touching the locks: those are the parent's."""
        # The others have closed their files: the numbers of these may be those of other files by now.
        places = [place for place in self._left_places if place.is_waiting]
        if self._place is not None:
            places.append(self._place)
        self._place, self._left_places = None, []
        for place in places:
            place.forget()


class _Wait:
    """A thread that waits in the kernel."""

    def __init__(self, timeout: float, on_late: Callable[[], None]) -> None:
        self.until = time.monotonic() + timeout
        self.on_late = on_late
        self.is_late = False
        self.deciding = threading.Lock()  # guards `is_late`; taken before `_Place._changing`


class _Place:
    """A place in the queue.

    The kernel wakes the thread that is to write, and no other. A second thread looks once in a while whether
    the first one has been waiting for too long. It lives while there are waits.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._changing = threading.Lock()  # guards all that follows
        self._has_turn = False
        self._wait: _Wait | None = None  # perhaps of a thread whose work another one continues
        self._count = self._last_count = 0  # of waits, now and at the last look
        self._closed = False
        self._is_watched = False
        self._next_look = math.inf
        self._look_now = threading.Event()

    def try_enter(self) -> bool:
        with self._changing:
            if not (self._has_turn or self._wait or self._closed):
                self._has_turn = self._take(and_wait=False)
            return self._has_turn

    def wait(self, timeout: float, on_late: Callable[[], None]) -> bool:
        wait = _Wait(timeout, on_late)
        with self._changing:
            # If a thread is late already, whoever has made it late still has the turn.
            if self._wait or self._closed or timeout <= 0 or not self._watch(wait):
                return True
            self._wait = wait
            self._count += 1
        has_turn = False
        with suppress(OSError):  # the next `try_enter` gets it too
            has_turn = self._take(and_wait=True)
        with wait.deciding, self._changing:
            self._stop_waiting(has_turn, wait.is_late)
        return not wait.is_late

    @property
    def is_waiting(self) -> bool:
        return self._wait is not None

    def end(self) -> None:
        with self._changing:
            self._end()

    def close(self) -> None:
        with self._changing:
            self._end()
            self._closed = True
            self._look_now.set()
            if self._wait is None:  # else the thread that waits closes the file
                os.close(self._file)  # drops the locks

    def forget(self) -> None:
        with suppress(OSError):
            os.close(self._file)

    def _stop_waiting(self, has_turn: bool, is_late: bool) -> None:
        self._wait = None
        self._has_turn = has_turn and not (is_late or self._closed)
        if has_turn and not self._has_turn:
            self._unlock(_TURN)  # closing the file does not, if a forked child has it too
        if self._closed:
            os.close(self._file)

    def _end(self) -> None:
        if self._has_turn and not self._closed:
            self._unlock(_TURN)
        self._has_turn = False

    def _watch(self, wait: _Wait) -> bool:
        """See to it that there is a look at this wait when its time is up; `False` if that is impossible."""
        if self._is_watched:
            if wait.until < self._next_look:
                self._look_now.set()
            return True
        try:
            threading.Thread(target=self._look_after_waits, name="recollect-turns", daemon=True).start()
        except RuntimeError:  # there are too many threads
            return False
        self._is_watched = True
        return True

    # --- on the second thread ---

    def _look_after_waits(self) -> None:
        while (seconds := self._look()) is not None:
            self._look_now.wait(seconds)

    def _look(self) -> float | None:
        """Look at the current wait; returns the seconds until the next look, `None` if there is none."""
        with self._changing:
            self._look_now.clear()
            wait, is_idle, now = self._wait, self._count == self._last_count, time.monotonic()
            self._last_count = self._count
            if wait is None or wait.is_late:
                self._is_watched = not (is_idle or self._closed)
                self._next_look = now + PATIENCE
                return PATIENCE if self._is_watched else None
            self._next_look = now if self._closed else wait.until
        if self._next_look <= now:
            self._make_late(wait)
        return max(0.0, self._next_look - now)

    def _make_late(self, wait: _Wait) -> None:
        with wait.deciding:
            if self._wait is not wait:
                return  # it has its turn
            try:
                wait.on_late()
                wait.is_late = True
            except RuntimeError:  # there are too many threads: this one goes on waiting
                wait.until = self._next_look = time.monotonic() + PATIENCE

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
