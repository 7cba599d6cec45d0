"""What a process or a server holds on to, compared before and after: nothing is to be left behind."""

import asyncio
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PATIENCE = 10.0  # seconds that whoever lets go has for it
_OURS = "pid <> pg_backend_pid() AND backend_type = 'client backend'"
_OF_POSTGRES = {
    "connections": f"SELECT count(*) FROM pg_stat_activity WHERE {_OURS}",
    "transactions": f"SELECT count(*) FROM pg_stat_activity WHERE {_OURS} AND xact_start IS NOT NULL",
    "locks": "SELECT count(*) FROM pg_locks WHERE pid <> pg_backend_pid()",
    "prepared transactions": "SELECT count(*) FROM pg_prepared_xacts",
}
_DEADLOCK = b"deadlock detected"


# How threads are named that stay for as long as the process does, one of each name: those that wait or work
# for all sessions of SQLite files, and those that asyncio lends to whoever asks.
LASTING = ("recollect-waiting", "recollect-long", "recollect-reader", "asyncio_")


@dataclass(frozen=True)
class Held:
    """What a process holds: its threads and what it has open, by name, and tasks of its event loop."""

    threads: Counter[str]
    tasks: int
    open: Counter[str]


def held(process: int | None = None) -> Held:
    """What another process holds, or this one, whose tasks and names of threads are known too."""
    folder = Path("/proc", str(process or os.getpid()))
    open_files = Counter(_open_files(folder / "fd"))
    if process is not None:
        return Held(Counter("a thread" for _ in (folder / "task").iterdir()), 0, open_files)
    return Held(Counter(thread.name for thread in threading.enumerate()), _tasks(), open_files)


def _tasks() -> int:
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:  # no event loop is running
        return 0


def _open_files(folder: Path) -> list[str]:
    names = []
    for handle in folder.iterdir():
        try:
            name = os.readlink(handle)
        except FileNotFoundError:  # that of the listing itself, which has ended
            continue
        if not name.startswith(f"/proc/{folder.parent.name}/"):
            names.append("a socket" if name.startswith("socket:") else name)
    return names


def more_than(before: Held, after: Held) -> list[str]:
    """What is held after and was not before, in words."""
    lasting = Counter({name: 1 for name in after.threads if name.startswith(LASTING)})
    found = [f"a thread {name}" for name in after.threads - (before.threads | lasting)]
    if after.tasks > before.tasks:
        found.append(f"{after.tasks - before.tasks} tasks")
    return found + [f"{count} times open: {name}" for name, count in (after.open - before.open).items()]


async def left_behind(before: Held, patience: float = _PATIENCE) -> list[str]:
    """What this process still holds beyond what it held before, after it had some time to let go."""
    deadline = time.monotonic() + patience
    while (found := more_than(before, held())) and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    return found


def left_in_postgres(url: str, patience: float = _PATIENCE) -> list[str]:
    """The connections, transactions and locks of others that a PostgreSQL still has, in words."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:

        def look() -> list[str]:
            counts = {what: connection.execute(sql.encode()).fetchone() for what, sql in _OF_POSTGRES.items()}
            return [f"{row[0]} {what} in PostgreSQL" for what, row in counts.items() if row and row[0]]

        return _when_settled(look, patience)


def deadlocks_in(log: Path) -> list[str]:
    """Whether a PostgreSQL tells of some in its log, in words: they are undone, but not at once.

    That takes a second, and where the clock is set back meanwhile, until it is as late again.
    """
    count = log.read_bytes().count(_DEADLOCK)
    return [f"{count} deadlocks in PostgreSQL"] if count else []


def left_in_redis(command: Callable[..., Any], patience: float = _PATIENCE) -> list[str]:
    """The connections of others that a Redis still has, in words; `command` is that of a `RedisServer`."""

    def look() -> list[str]:
        others = (
            len(str(command("CLIENT", "LIST", "TYPE", "normal")).split("id=")) - 2
        )  # and the one who asks
        return [f"{others} connections in Redis"] if others > 0 else []

    return _when_settled(look, patience)


def left_in_sqlite(path: Path) -> list[str]:
    """The lock that somebody still has on a file, in words."""
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        return [f"a lock on the file: {error}"]
    finally:
        connection.close()
    return []


def _when_settled(look: Callable[[], list[str]], patience: float) -> list[str]:
    deadline = time.monotonic() + patience
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found
