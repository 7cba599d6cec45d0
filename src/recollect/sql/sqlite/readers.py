"""A pool of a few connections that only read, shared by all sessions of a file."""

import sqlite3
import threading
from collections.abc import Callable

from .connection import ImmutableConnection


class Readers:
    """A pool of connections, opened as needed. One caller at a time uses a connection.

    `size` connections are for quick reads. Up to `most_long` more are lent to long reads, so that quick reads
    do not wait for them. With `most_long` 0, all reads share the `size` connections.
    """

    def __init__(
        self, open_connection: Callable[[], sqlite3.Connection], size: int, most_long: int = 0
    ) -> None:
        self._open = open_connection
        self._size = size
        self._most_long = most_long
        self._free: list[sqlite3.Connection] = []
        self._in_use: set[sqlite3.Connection] = set()
        self._long: set[sqlite3.Connection] = set()
        self._paused = False
        # Re-entrant, because the garbage collection of a session may empty the pool at any point.
        self._changed = threading.Condition()

    @property
    def is_used(self) -> bool:
        """Whether any connection is open."""
        return bool(self._free or self._in_use or self._long)

    def take_nowait(self) -> sqlite3.Connection | None:
        """A free connection, or `None` if there is none."""
        with self._changed:
            return self._take()

    def take(self) -> sqlite3.Connection:
        """A connection. Waits for a free one, so do not call it on the event loop's thread."""
        with self._changed:
            while (connection := self._take()) is None:
                self._changed.wait()
            return connection

    def take_long(self) -> sqlite3.Connection:
        """A connection for a long read. Waits for one, so do not call it on the event loop's thread."""
        if not self._most_long:
            return self.take()
        with self._changed:
            while self._paused or len(self._long) >= self._most_long:
                self._changed.wait()
            connection = self._free.pop() if self._free else self._open()
            self._long.add(connection)
            return connection

    def lend(self, connection: sqlite3.Connection) -> None:
        """Count a quick read as a long one, if there is room, so that another quick read can start."""
        with self._changed:
            if connection in self._in_use and len(self._long) < self._most_long:
                self._in_use.remove(connection)
                self._long.add(connection)
                self._changed.notify_all()

    def _take(self) -> sqlite3.Connection | None:
        if self._paused:
            return None
        if self._free:
            connection = self._free.pop()
        elif len(self._in_use) < self._size:
            connection = self._open()
        else:
            return None
        self._in_use.add(connection)
        return connection

    def give_back(self, connection: sqlite3.Connection) -> None:
        """Return a connection to the pool."""
        with self._changed:
            is_ours = connection in self._in_use or connection in self._long
            self._in_use.discard(connection)
            self._long.discard(connection)
            has_room = len(self._free) + len(self._in_use) < self._size
            if is_ours and has_room and not isinstance(connection, ImmutableConnection):
                self._free.append(connection)
            else:  # the pool was emptied or is full, or the connection would not see later changes
                connection.close()
            self._changed.notify_all()

    def empty(self) -> None:
        """Close the free connections. Those in use are closed when they come back."""
        with self._changed:
            for connection in self._free:
                connection.close()
            self._free.clear()
            self._in_use.clear()
            self._long.clear()
            self._changed.notify_all()

    def pause(self) -> None:
        """Wait until no connection is in use, and lend none until `resume`."""
        with self._changed:
            self._paused = True
            while self._in_use or self._long:
                self._changed.wait()

    def restart(self) -> None:
        """Resume after a fork, in the child: a thread of the parent may hold the old lock."""
        self._changed = threading.Condition()
        self._paused = False

    def resume(self) -> None:
        """Lend connections again."""
        with self._changed:
            self._paused = False
            self._changed.notify_all()
