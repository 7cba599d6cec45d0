"""Announcements of work between processes on PostgreSQL, so that workers need not poll the queue.

A process that has added work announces it after the commit, and at most ten times a second: a `NOTIFY` within
the transaction would make all commits of the server wait for each other. An announcement may be lost: with
its process, with a connection, or in a connection pool such as PgBouncer, which does not pass them on. So
workers poll as well: every second, or seldom once they have heard an announcement of their own.
"""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic

from ...errors import RecollectError
from ...sql.scripts import Statement, run_all
from ..database.access import MemoryDatabase

_log = logging.getLogger("recollect.memory")

_CHANNEL = "recollect_work"
_ANNOUNCE = f"SELECT pg_notify('{_CHANNEL}', '')"
_INTERVAL = 0.1  # seconds between two announcements of a process
_STALE = 1.0  # seconds after which an announcement was not sent, because its event loop has ended
_HEARING_SECONDS = 5.0  # until an announcement of one's own must have come back
_FIRST_PAUSE = 1.0  # seconds until a lost connection is opened again; doubled each time
_LONGEST_PAUSE = 60.0
_DEAF_PAUSE = 300.0  # a pool that passes nothing on will not do so soon


class Announcer:
    """Announces that there is work. On SQLite it does nothing."""

    def __init__(self, database: MemoryDatabase) -> None:
        self._database = database
        self._sent_at = self._due_at = -_STALE
        self._waiting: asyncio.TimerHandle | None = None
        self._sending: set[asyncio.Task[None]] = set()

    def announce(self) -> None:
        """Announce work soon, if the database can. Never waits."""
        now = monotonic()
        if not self._database.can_notify or now < self._due_at + _STALE:
            return  # an announcement that is due will do for this one
        self._due_at = max(now, self._sent_at + _INTERVAL)
        self._waiting = asyncio.get_running_loop().call_later(self._due_at - now, self._begin)

    async def aclose(self) -> None:
        """Send what is due."""
        if self._waiting is not None and not self._waiting.cancelled() and self._due_at > self._sent_at:
            self._waiting.cancel()
            self._begin()
        await asyncio.gather(*self._sending)

    def _begin(self) -> None:
        self._sent_at, self._due_at, self._waiting = monotonic(), -_STALE, None
        task = asyncio.ensure_future(self._send())
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self) -> None:
        try:
            await self._database.write(lambda: run_all([Statement(_ANNOUNCE, alone=True)]))
        except (RecollectError, RuntimeError, OSError) as error:  # workers poll for it
            _log.debug("work not announced (%s)", type(error).__name__)


class Hearing:
    """Wakes workers when another process announces work."""

    def __init__(self, database: MemoryDatabase, wake: Callable[[], None]) -> None:
        self._database = database
        self._wake = wake
        self._heard = asyncio.Event()
        self.is_reliable = False
        """Whether announcements arrive."""

    async def listen(self) -> None:
        """Listen until cancelled. A lost connection is opened again."""
        pause = _FIRST_PAUSE
        while self._database.can_notify:
            try:
                pause = _FIRST_PAUSE if await self._listen_once() else _DEAF_PAUSE
            except (RecollectError, OSError) as error:
                _log.info("announcements of work not heard, polling (%s)", type(error).__name__)
                pause = min(pause * 2, _LONGEST_PAUSE)
            await asyncio.sleep(pause)

    async def _listen_once(self) -> bool:
        """Listen until the connection is lost; `False` if announcements do not arrive."""
        self._heard.clear()
        try:
            async with self._database.listen(_CHANNEL, self._hear) as lost:
                await self._database.write(lambda: run_all([Statement(_ANNOUNCE, alone=True)]))
                async with asyncio.timeout(_HEARING_SECONDS):
                    await self._heard.wait()
                self.is_reliable = True
                await lost.wait()
                return True
        except TimeoutError:
            _log.info("announcements of work do not arrive, polling")
            return False
        finally:
            self.is_reliable = False
            self._wake()  # something may have been announced meanwhile

    def _hear(self) -> None:
        self._heard.set()
        self._wake()
