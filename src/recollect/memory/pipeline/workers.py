"""Workers: they claim due runs and execute them in this process, in an event loop of their own thread."""

import asyncio
import logging
import threading
import traceback
import uuid
from collections.abc import Awaitable, Callable

from ...errors import StorageError
from ...sql.scripts import Row
from ..background import BackgroundLoop
from ..database.access import MemoryDatabase
from .embedding_backfill import EmbeddingBackfill
from .record_filler import RecordFiller
from .runner import Runner
from .scheduler import RunScheduler

_log = logging.getLogger("recollect.memory")
_SHORTEST_WAIT = 0.01  # seconds: a due row may be locked by another transaction for a moment
_LONGEST_WAIT = 1.0  # until the next poll: other processes add to the queue without a notification
_AFTER_FAULT = 1.0
_PATIENCE = 5.0  # until a worker that has not ended is cancelled again


class Workers:
    """Workers on one database, in an event loop of their own.

    `count` workers execute runs. One more makes vectors and search records, and one creates the runs of
    conversations that have been quiet for long enough.
    """

    def __init__(
        self, database: MemoryDatabase, runner: Runner, count: int, backfill: EmbeddingBackfill | None = None
    ) -> None:
        self._database = database
        self._runner = runner
        self._count = count
        self._backfill = backfill
        self._records = RecordFiller(database, runner.tenant)
        self._scheduler = RunScheduler(database, runner.tenant)
        self._starting = threading.Lock()
        self._loop = BackgroundLoop("recollect-memory-workers")
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_running(self) -> bool:
        """Whether the workers run, busy or idle."""
        return self._loop.is_running

    def start(self) -> None:
        """Start the workers, or make them poll for work now if they run."""
        if not self._count:
            return
        with self._starting:
            if self._loop.is_running:
                self._loop.call_soon(self._wake.set)
            else:
                self._wake = asyncio.Event()  # belongs to the new loop: after a fork there is another one
                self._loop.submit(self._begin())

    def stop(self) -> None:
        """Stop the workers. Runs in progress are released, so other workers can claim them at once."""
        if self._loop.is_running:
            self._loop.run(self._end())
        self._loop.stop()

    async def _begin(self) -> None:
        duties = [*[self._execute_run] * self._count, self._create_runs, self._index]
        self._tasks = [asyncio.create_task(self._work(duty)) for duty in duties]

    async def _end(self) -> None:
        """End the workers before their loop stops, because a stopping loop would also cancel the releases."""
        left = set(self._tasks)
        while left:
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=_PATIENCE)  # an extractor may swallow a cancellation

    async def _work(self, duty: Callable[[], Awaitable[bool]]) -> None:
        """Repeat a duty while it finds work, then wait for more. An error never ends a worker."""
        while True:
            try:
                self._wake.clear()
                if not await duty():
                    await self._wait()
            except StorageError as error:
                _log.warning("worker waits for the database (%s)", type(error).__name__)
                await asyncio.sleep(_AFTER_FAULT)
            except Exception as error:  # noqa: BLE001 - no caller waits for the error, and a worker must not end
                _log.error("worker failed unexpectedly: %s", _locate(error))
                await asyncio.sleep(_AFTER_FAULT)

    async def _execute_run(self) -> bool:
        task = await self._runner.claim(str(uuid.uuid4()))
        if task is not None:
            await self._runner.execute(task)
            self._wake.set()  # the new entries need vectors
        return task is not None

    async def _create_runs(self) -> bool:
        made = await self._scheduler.step()
        if made:
            self._wake.set()  # new runs are due
        return made > 0

    async def _index(self) -> bool:
        """Make vectors and search records. If the embedder does not answer, messages are found by words."""
        if self._backfill is not None and await self._backfill.step() > 0:
            return True
        return await self._records.step() > 0

    async def _wait(self) -> None:
        """Wait until work is due or `start` is called."""
        tenant = self._runner.tenant
        query = self._database.runs.seconds_to_next(tenant)
        due = await self._database.fetch(query, (tenant,), _seconds_from)
        seconds = _LONGEST_WAIT if due is None else min(max(due, _SHORTEST_WAIT), _LONGEST_WAIT)
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return


def _locate(error: Exception) -> str:
    """The type of an error and the line that raised it. The message is left out: it may quote contents."""
    frames = traceback.extract_tb(error.__traceback__)
    return (
        f"{type(error).__name__} at {frames[-1].filename}:{frames[-1].lineno}"
        if frames
        else type(error).__name__
    )


def _seconds_from(rows: list[Row]) -> float | None:
    value = rows[0][0]
    return None if value is None else float(value)
