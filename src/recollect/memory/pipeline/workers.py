"""Workers: they claim due runs and execute them in this process, in an event loop of their own thread."""

import asyncio
import logging
import threading
import traceback
from collections.abc import Awaitable, Callable

from ...errors import StorageError
from ...ids import new_id
from ...sql.scripts import Row
from ..background import BackgroundLoop
from ..database.access import MemoryDatabase
from ..texts.remembered import forget_texts
from .announcements import Hearing
from .embedding_backfill import EmbeddingBackfill
from .record_filler import RecordFiller
from .runner import Runner
from .scheduler import RunScheduler

_log = logging.getLogger("recollect.memory")
_SHORTEST_WAIT = 0.01  # seconds: a due row may be locked by another transaction for a moment
_LONGEST_WAIT = 1.0  # until the next look at the queue: other processes may add to it without an announcement
_LONGEST_WAIT_IF_TOLD = 5.0  # the same where other processes announce what they add
_MOST_LOOKS = 10  # at a queue without due work, before a claim, which also finds what a fast clock has queued
_AFTER_FAULT = 1.0
_PATIENCE = 5.0  # until a worker that has not ended is cancelled again


class Workers:
    """Workers on one database, in an event loop of their own.

    Up to `count` workers execute runs. One more makes vectors and search records, one creates the runs of
    conversations that have been quiet for long enough, and one hears of work of other processes.
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
        self._hearing = Hearing(database, self._wake_all)
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
        self._hearing = Hearing(self._database, self._wake_all)
        work = [
            *(
                self._work(self._execute_runs, self._runs_due, self._wait_for_run)
                for _ in range(self._executing)
            ),
            self._work(self._create_runs, self._quiet_ends, self._wait_longest),
            self._work(self._index, self._texts_wait, self._wait_for_texts),
            self._hearing.listen(),
        ]
        self._tasks = [asyncio.create_task(each) for each in work]

    @property
    def _executing(self) -> int:
        """How many workers execute runs. Those without a model wait for nothing but the database.

        A second worker computes while the first one waits for a server. On a file, it would only lengthen the
        transactions, for which the requests of other processes wait.
        """
        if not self._runner.asks_no_model:
            return self._count
        return min(self._count, 2 if self._database.can_notify else 1)

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
        was_due = await self._runner.execute_due(new_id())
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

    @property
    def _longest_wait(self) -> float:
        return _LONGEST_WAIT_IF_TOLD if self._hearing.is_reliable else _LONGEST_WAIT

    async def _wait_longest(self, due: asyncio.Event) -> None:
        await _wait(due, self._longest_wait)

    async def _wait_for_texts(self, due: asyncio.Event) -> None:
        """Wait for texts to index. An embedder that has failed is called again after its pause."""
        pause = 0.0 if self._backfill is None else self._backfill.pause
        await _wait(due, min(max(pause, _LONGEST_WAIT), self._longest_wait) if pause else self._longest_wait)

    async def _wait_for_run(self, due: asyncio.Event) -> None:
        """Wait until a run is due. Looking at the queue writes nothing."""
        looks, is_woken = 0, False
        while looks < (1 if self._hearing.is_reliable else _MOST_LOOKS):
            left = await self._seconds_to_next()
            if left is None or left > 0:
                forget_texts()
            elif is_woken:
                return
            longest = self._longest_wait
            seconds = longest if left is None else min(max(left, _SHORTEST_WAIT), longest)
            is_woken = await _wait(due, seconds)
            due.clear()
            if not is_woken and left is not None and left <= seconds:
                self._quiet_ends.set()
                return
            looks += not is_woken

    async def _seconds_to_next(self) -> float | None:
        tenant = self._runner.tenant
        return await self._database.fetch(
            self._database.runs.seconds_to_next(tenant), (tenant,), _seconds_from
        )


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
