"""Files that only their owner can read and write: databases, backups, exports.

They have mode 0600 from the moment they exist. A file that already exists keeps its mode.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

_OWNER_ONLY = 0o600
_creating = threading.Lock()


def create_private(path: str | Path) -> None:
    """Create an empty file of mode 0600, unless the path exists.

    SQLite gives the files beside a database the mode of the database.
    """
    if os.path.lexists(path):
        return
    # Closing any descriptor of a file drops the locks that SQLite holds on it in this process. The lock keeps
    # another thread from opening the new file between our open and our close.
    with _creating:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY))
        except FileExistsError:  # another process created it first
            return


@contextmanager
def replace_privately(path: str | Path) -> Iterator[Path]:
    """Yield a temporary file of mode 0600, which replaces `path` when the block ends without an error.

    The file appears completely or not at all. A device or a pipe cannot be replaced: it is yielded itself.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        yield target
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        create_private(temporary)
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _replace_lock() -> None:
    """In a forked child, replace the lock: a thread that only the parent has may hold it."""
    global _creating
    _creating = threading.Lock()


os.register_at_fork(after_in_child=_replace_lock)
