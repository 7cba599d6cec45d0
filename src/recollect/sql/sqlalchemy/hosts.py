"""Several hosts of one PostgreSQL: a primary and its standbys, in the form of libpq.

`postgresql://a:5432,b:5433/name` is rewritten to a URL that SQLAlchemy and both drivers understand. A
connection is made to the host that was the primary last, and else to the others. After a fail-over, an old
primary that comes back would accept writes again. It is recognised by its timeline, which is older than one
that was seen before, and refused.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncEngine

from ...errors import UnreachableError
from ..urls import WANTED_HOST, split_host

_WRITTEN = "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"
_TIMELINE = f"SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE {_WRITTEN} END"
_WRITABLE = ("read-write", "primary")


@dataclass(frozen=True)
class _Found:
    """A connection to a host, and the timeline that the host writes; empty for a standby."""

    host: int
    timeline: str
    connection: Any


class Hosts:
    """Connects to the primary among the hosts of a URL. All engines of the URL share what is known of it."""

    def __init__(self, url: URL) -> None:
        given = url.query.get("host", ())
        self._hosts = [] if isinstance(given, str) else [split_host(each) for each in given]
        self._wants_primary = url.query.get(WANTED_HOST) in _WRITABLE
        self._lock = threading.Lock()
        self._primary = 0
        self._timeline = ""

    def watch(self, engine: AsyncEngine) -> None:
        """Let an engine connect by this, if there are several hosts."""
        if len(self._hosts) > 1 and self._wants_primary:
            event.listen(engine.sync_engine, "do_connect", self._connect)

    def _connect(self, dialect: Any, _: Any, arguments: Sequence[Any], options: dict[str, Any]) -> Any:
        with self._lock:
            first, known = self._primary, self._timeline
        order = [first, *(host for host in range(len(self._hosts)) if host != first)]
        best: _Found | None = None
        failed: Exception | None = None
        for host in order:
            try:
                found = self._open(dialect, host, arguments, options)
            except Exception as error:  # noqa: BLE001 - any driver; raised below if no host is left
                failed = error
                continue
            if not found.timeline or (best is not None and found.timeline <= best.timeline):
                found.connection.close()
                continue
            if best is not None:
                best.connection.close()
            best = found
            if known and best.timeline >= known:
                break  # until a primary is known, all hosts are asked: an old one may be the first
        return self._accept(best, failed)

    def _open(self, dialect: Any, host: int, arguments: Sequence[Any], options: dict[str, Any]) -> _Found:
        name, port = self._hosts[host]
        connection = dialect.connect(*arguments, **{**options, "host": name, "port": port})
        cursor = connection.cursor()
        cursor.execute(_TIMELINE)
        (timeline,) = cursor.fetchone()
        cursor.close()
        connection.rollback()
        return _Found(host, timeline, connection)

    def _accept(self, best: _Found | None, failed: Exception | None) -> Any:
        """The connection to the primary. Raises an error if there is none, or only an old one."""
        with self._lock:
            if best is not None and best.timeline >= self._timeline:
                self._primary, self._timeline = best.host, best.timeline
                return best.connection
        if best is not None:
            best.connection.close()
            raise UnreachableError(
                "no host is the primary: one is an old primary, whose writes would be lost"
            )
        if failed is not None:
            raise failed
        raise UnreachableError("no host accepts writes: all of them are standbys")
