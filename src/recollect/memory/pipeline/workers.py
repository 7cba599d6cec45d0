"""Workers: they take runs as these become due, in this process, beside whatever else it does."""

import asyncio
import logging
import threading
import uuid

from ...errors import StorageError
from ...sessions.sql.scripts import Row
from ..background import BackgroundLoop
from ..database.access import MemoryDatabase
from .runner import Runner

_log = logging.getLogger("recollect.memory")
_SHORTEST_WAIT = 0.01  # seconds: what is due may be held by a transaction of another for a moment
_LONGEST_WAIT = 1.0  # until the queue is looked at again: other processes add to it unseen
_AFTER_FAULT = 1.0


class Workers:
    """Some workers on one database, in a loop of their own."""

    def __init__(self, database: MemoryDatabase, runner: Runner, count: int) -> None:
        self._database = database
        self._runner = runner
        self._count = count
        self._starting = threading.Lock()
        self._loop = BackgroundLoop("recollect-memory-workers")
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to work, or look for work now if they have begun."""
        if not self._count:
            return
        with self._starting:
            if self._loop.is_running:
                self._loop.call_soon(self._wake.set)
            else:
                self._wake = asyncio.Event()  # of that loop: after a fork it is another
                self._loop.submit(self._begin())

    def stop(self) -> None:
        """End the work. What is being done is given back, so that others can take it at once."""
        if self._loop.is_running:
            self._loop.run(self._end())
        self._loop.stop()

    async def _begin(self) -> None:
        self._tasks = [asyncio.create_task(self._work()) for _ in range(self._count)]

    async def _end(self) -> None:
        """End the workers before their loop: it would also end what they do to give runs back."""
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)

    async def _work(self) -> None:
        while True:
            try:
                self._wake.clear()
                task = await self._runner.take(str(uuid.uuid4()))
                if task is None:
                    await self._wait()
                else:
                    await self._runner.do(task)
            except StorageError as error:
                _log.warning("the database does not answer (%s)", type(error).__name__)
                await asyncio.sleep(_AFTER_FAULT)
            except Exception as error:  # noqa: BLE001 - nobody else is told, and a worker must not end
                _log.exception("a worker met what it should not (%s)", type(error).__name__)
                await asyncio.sleep(_AFTER_FAULT)

    async def _wait(self) -> None:
        """Until something is due, or somebody says so."""
        due = await self._database.fetch(self._database.queue.seconds_to_next, (), _seconds_from)
        seconds = _LONGEST_WAIT if due is None else min(max(due, _SHORTEST_WAIT), _LONGEST_WAIT)
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except TimeoutError:
            return


def _seconds_from(rows: list[Row]) -> float | None:
    value = rows[0][0]
    return None if value is None else float(value)
