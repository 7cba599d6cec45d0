"""How large a database is, and how much of it is left over from what was deleted."""

import os
import sqlite3
import time
from contextlib import closing

import psycopg


def size_of(path: str) -> int:
    """Bytes of a file; none where it is not there."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def size_without_audit(path: str) -> int:
    """Bytes of a SQLite file, less those of the audit log, which is to be kept for as long as was asked."""
    with closing(sqlite3.connect(path)) as connection:
        ((audit,),) = connection.execute(_AUDIT_IN_SQLITE)
    return size_of(path) - int(audit)


def log_of(path: str) -> int:
    """Bytes of the write-ahead log of a SQLite file."""
    return size_of(f"{path}-wal")


def free_part_of(path: str) -> float:
    """The part of a SQLite file that is free to be used again."""
    with closing(sqlite3.connect(path)) as connection:
        (free,), (pages,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in _PAGES)
    return float(free / pages)


_AUDIT_IN_SQLITE = (
    "SELECT coalesce(sum(pgsize), 0) FROM dbstat"
    " WHERE name IN (SELECT name FROM sqlite_master WHERE tbl_name = 'audit_log')"
)
_PAGES = ("freelist_count", "page_count")


class Postgres:
    """A PostgreSQL that vacuums as often as is due in a day that takes minutes."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        for name, value in _COMPRESSED.items():
            self._connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        self._connection.execute("SELECT pg_reload_conf()")

    def size(self) -> int:
        """Bytes of the database, without the server's own tables and the audit log."""
        return self._number(
            "SELECT coalesce(sum(pg_total_relation_size(relid)), 0) FROM pg_stat_user_tables"
            " WHERE relname <> 'audit_log'"
        )

    def dead_part(self) -> float:
        """The part of the rows that were deleted, in tables that are due to be vacuumed."""
        dead = self._number(f"SELECT coalesce(sum(n_dead_tup), 0) {_DUE}")
        live = self._number("SELECT coalesce(sum(n_live_tup), 0) FROM pg_stat_user_tables")
        return dead / max(dead + live, 1)

    def dead_part_in_time(self, most: float, patience: float) -> float:
        """The same, once it is no more than `most`; or as it is after so many seconds."""
        until = time.monotonic() + patience
        while (part := self.dead_part()) > most and time.monotonic() < until:
            time.sleep(_BETWEEN_LOOKS)
        return part

    def vacuums(self) -> int:
        """How often the server has vacuumed by itself."""
        return self._number("SELECT coalesce(sum(autovacuum_count), 0) FROM pg_stat_user_tables")

    def connections(self) -> int:
        """How many clients are connected, this one aside."""
        others = "backend_type = 'client backend' AND pid <> pg_backend_pid()"
        return self._number(f"SELECT count(*) FROM pg_stat_activity WHERE {others}")

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()

    def _number(self, query: str) -> int:
        row = self._connection.execute(query).fetchone()
        assert row is not None
        return int(row[0])


_COMPRESSED = {"autovacuum_naptime": "1s"}
_BETWEEN_LOOKS = 0.5  # seconds
# As the server decides it by itself: a small table may keep what was deleted.
_DUE = (
    "FROM pg_stat_user_tables JOIN pg_class ON oid = relid"
    " WHERE n_dead_tup > 50 + 0.2 * greatest(reltuples, 0)"
)
