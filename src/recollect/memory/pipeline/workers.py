"""Workers: they take runs as these become due, in this process, beside whatever else it does."""

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
from .runner import Runner
from .scheduler import QuietConversations

_log = logging.getLogger("recollect.memory")
_SHORTEST_WAIT = 0.01  # seconds: what is due may be held by a transaction of another for a moment
_LONGEST_WAIT = 1.0  # until the queue is looked at again: other processes add to it unseen
_AFTER_FAULT = 1.0
_PATIENCE = 5.0  # until one who was asked to end is asked again


class Workers:
    """Some workers on one database, in a loop of their own.

    One more gives vectors to what has none, and one makes the runs of conversations that have gone quiet.
    """

    def __init__(
        self, database: MemoryDatabase, runner: Runner, count: int, embedding: EmbeddingBackfill | None = None
    ) -> None:
        self._database = database
        self._runner = runner
        self._count = count
        self._embedding = embedding
        self._quiet = QuietConversations(database, runner.tenant)
        self._starting = threading.Lock()
        self._loop = BackgroundLoop("recollect-memory-workers")
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_running(self) -> bool:
        """Whether they are at work, or wait for some."""
        return self._loop.is_running

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
        duties = [*[self._do_run] * self._count, self._learn_from_quiet]
        duties += [self._embed] if self._embedding else []
        self._tasks = [asyncio.create_task(self._work(duty)) for duty in duties]

    async def _end(self) -> None:
        """End the workers before their loop: it would also end what they do to give runs back."""
        left = set(self._tasks)
        while left:
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=_PATIENCE)  # some code swallows a cancellation

    async def _work(self, duty: Callable[[], Awaitable[bool]]) -> None:
        """Do a duty for as long as there is something to do, and wait until there is again."""
        while True:
            try:
                self._wake.clear()
                if not await duty():
                    await self._wait()
            except StorageError as error:
                _log.warning("worker waits for the database (%s)", type(error).__name__)
                await asyncio.sleep(_AFTER_FAULT)
            except Exception as error:  # noqa: BLE001 - nobody else is told, and a worker must not end
                _log.error("a worker met what it should not: %s", _where(error))
                await asyncio.sleep(_AFTER_FAULT)

    async def _do_run(self) -> bool:
        task = await self._runner.take(str(uuid.uuid4()))
        if task is not None:
            await self._runner.do(task)
            self._wake.set()  # what was learned has no vectors yet
        return task is not None

    async def _learn_from_quiet(self) -> bool:
        made = await self._quiet.step()
        if made:
            self._wake.set()  # there is something to do
        return made > 0

    async def _embed(self) -> bool:
        return self._embedding is not None and await self._embedding.step() > 0

    async def _wait(self) -> None:
        """Until something is due, or somebody says so."""
        tenant = self._runner.tenant
        query = self._database.runs.seconds_to_next(tenant)
        due = await self._database.fetch(query, (tenant,), _seconds_from)
        seconds = _LONGEST_WAIT if due is None else min(max(due, _SHORTEST_WAIT), _LONGEST_WAIT)
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return


def _where(error: Exception) -> str:
    """What an error is and where it was raised; not what it says, for that may quote contents."""
    frames = traceback.extract_tb(error.__traceback__)
    return (
        f"{type(error).__name__} at {frames[-1].filename}:{frames[-1].lineno}"
        if frames
        else type(error).__name__
    )


def _seconds_from(rows: list[Row]) -> float | None:
    value = rows[0][0]
    return None if value is None else float(value)
