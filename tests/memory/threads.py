"""The threads that a test's own stores have: services that other tests share have theirs meanwhile."""

import threading

PREFIX = "recollect-memory"


class OwnThreads:
    """Those of long-term memory that have begun since this was made."""

    def __init__(self) -> None:
        self._others = set(threading.enumerate())

    def now(self) -> list[str]:
        """The names of those that run now."""
        mine = set(threading.enumerate()) - self._others
        return sorted(thread.name for thread in mine if thread.name.startswith(PREFIX))
