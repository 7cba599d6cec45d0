"""Workers: they claim due runs and execute them in this process, in an event loop of their own thread."""

import asyncio
import logging
import threading
import traceback
import uuid
from collections.abc import Awaitable, Callable
from functools import partial

from ...errors import StorageError
from ...sql.scripts import Row
from ..background import BackgroundLoop
from ..database.access import MemoryDatabase
from ..texts.remembered import forget_texts
from .embedding_backfill import EmbeddingBackfill
from .record_filler import RecordFiller
from .runner import Runner
from .scheduler import RunScheduler

_log = logging.getLogger("recollect.memory")
_SHORTEST_WAIT = 0.01  # seconds: a due row may be locked by another transaction for a moment
_LONGEST_WAIT = 1.0  # until the next look at the queue: other processes add to it without a notification
_MOST_LOOKS = 10  # at a queue without due work, before a claim, which also finds what a fast clock has queued
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
        self._runs_due = self._quiet_ends = self._texts_wait = asyncio.Event()
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
                self._loop.call_soon(self._wake_all)
            else:
                self._loop.submit(self._begin())

    def stop(self) -> None:
        """Stop the workers. Runs in progress are released, so other workers can claim them at once."""
        if self._loop.is_running:
            self._loop.run(self._end())
        self._loop.stop()

    async def _begin(self) -> None:
        # They belong to the new loop: after a fork there is another one.
        self._runs_due, self._quiet_ends, self._texts_wait = asyncio.Event(), asyncio.Event(), asyncio.Event()
        look_again = partial(_wait, seconds=_LONGEST_WAIT)
        work = [
            *(self._work(self._execute_runs, self._runs_due, self._wait_for_run) for _ in range(self._count)),
            self._work(self._create_runs, self._quiet_ends, look_again),
            self._work(self._index, self._texts_wait, look_again),
        ]
        self._tasks = [asyncio.create_task(each) for each in work]

    def _wake_all(self) -> None:
        for due in (self._runs_due, self._quiet_ends, self._texts_wait):
            due.set()

    async def _end(self) -> None:
        """End the workers before their loop stops, because a stopping loop would also cancel the releases."""
        left = set(self._tasks)
        while left:
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=_PATIENCE)  # an extractor may swallow a cancellation

    async def _work(
        self,
        duty: Callable[[], Awaitable[bool]],
        due: asyncio.Event,
        wait: Callable[[asyncio.Event], Awaitable[object]],
    ) -> None:
        """Repeat a duty while it finds work, then wait for more. An error never ends a worker."""
        while True:
            try:
                due.clear()
                if not await duty():
                    await wait(due)
            except StorageError as error:
                _log.warning("worker waits for the database (%s)", type(error).__name__)
                await asyncio.sleep(_AFTER_FAULT)
            except Exception as error:  # noqa: BLE001 - no caller waits for the error, and a worker must not end
                _log.error("worker failed unexpectedly: %s", _locate(error))
                await asyncio.sleep(_AFTER_FAULT)

    async def _execute_runs(self) -> bool:
        was_due = await self._runner.execute_due(str(uuid.uuid4()))
        if was_due:
            self._texts_wait.set()  # the new entries need vectors
            if self._scheduler.has_backlog:
                self._quiet_ends.set()
        return was_due

    async def _create_runs(self) -> bool:
        made = await self._scheduler.step()
        if made:
            self._runs_due.set()
        return made > 0

    async def _index(self) -> bool:
        """Make vectors and search records. If the embedder does not answer, messages are found by words."""
        if self._backfill is not None and await self._backfill.step() > 0:
            return True
        return await self._records.step() > 0

    async def _wait_for_run(self, due: asyncio.Event) -> None:
        """Wait until a run is due or `start` is called. Looking at the queue writes nothing."""
        tenant = self._runner.tenant
        query = self._database.runs.seconds_to_next(tenant)
        for _ in range(_MOST_LOOKS):
            left = await self._database.fetch(query, (tenant,), _seconds_from)
            seconds = _LONGEST_WAIT if left is None else min(max(left, _SHORTEST_WAIT), _LONGEST_WAIT)
            if left is None or left > 0:
                forget_texts()
            if await _wait(due, seconds) or (left is not None and left <= seconds):
                return


async def _wait(due: asyncio.Event, seconds: float) -> bool:
    """Wait for an event; `False` if it does not come in time."""
    try:
        async with asyncio.timeout(seconds):
            return await due.wait()
    except TimeoutError:
        return False


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
