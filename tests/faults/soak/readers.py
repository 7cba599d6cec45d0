"""Those who read a SQLite file all the time: each begins before the one before has ended."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_EACH = 0.01  # seconds that one reads


class Snapshot:
    """A look at a file as it is now, for as long as it is held."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("BEGIN")
        self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()

    def release(self) -> None:
        """Look no longer."""
        self._connection.close()


@contextmanager
def constant_readers(path: str) -> Iterator[None]:
    """While this lasts, there is no moment in which nobody reads."""
    done = threading.Event()
    thread = threading.Thread(target=_read_without_a_gap, args=(path, done))
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _read_without_a_gap(path: str, done: threading.Event) -> None:
    current = Snapshot(path)
    while not done.wait(_EACH):
        following = Snapshot(path)
        current.release()
        current = following
    current.release()
