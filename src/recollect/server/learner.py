"""The learning process: workers in a process of their own, so that they take no CPU time from requests.

The parent starts it when there is something to learn. It sends the settings on standard input, and a byte
when there is work. The process works until its input ends, which also happens when the parent dies, and
reports its state on standard output every few seconds. It runs at low priority. If it dies, the parent starts
it again, and unfinished runs resume at the stage they had reached. After some minutes without work it says
so and ends, and the parent starts it again when there is work.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from ..errors import FileReplacedError, RecollectError
from ..memory.pipeline.stages import Extractor
from ..memory.search.embedders import build_embedder
from ..memory.store import MemoryStore
from ..sql.sqlite.file_identity import check_file_exists
from ..threads import switch_threads_often
from .access.budget import Budget, TokenLedger
from .settings import Settings
from .telemetry.logs import configure_logging

STOP_TIMEOUT = 15.0
"""Seconds that a stopping learning process has to hand back its runs."""

_log = logging.getLogger("recollect.learning")
_FIRST_PAUSE = 1.0  # seconds until a dead process is started again; doubled each time
_LONGEST_PAUSE = 60.0
_REPORT_INTERVAL = 5.0
_POLL_INTERVAL = 1.0  # as the workers poll: other processes add work without a notification
_WAKE_DELAY = 0.02  # seconds: conversations that are recorded meanwhile wake the process once
_NICE = 10
_LARGEST_SETTINGS = 2**24  # bytes: each tenant may have its own limits


@dataclass(frozen=True)
class Learner:
    """A store whose workers are not started yet, with its extractor and token budget."""

    store: MemoryStore
    extractor: Extractor
    budget: Budget


@asynccontextmanager
async def open_learner(settings: Settings, tenant: str | None = None) -> AsyncIterator[Learner]:
    """Open a learner as the settings say, for one tenant or for all. It is closed after the block."""
    place, url = settings.database.options(), settings.database.url
    whose: dict[str, Any] = {"all_tenants": True} if tenant is None else {"tenant": tenant}
    from ..memory.extraction import build_extractor  # the parent does not need it

    extractor = build_extractor(settings.memory.extractor, **settings.memory.extraction())
    try:
        async with TokenLedger(url, **place) as ledger:
            budget = Budget(ledger, lambda tenant: settings.limits_for(tenant).tokens_per_day)
            store = MemoryStore(
                url,
                extractor=extractor,
                embedder=build_embedder(settings.memory.embedder),
                workers=settings.memory.workers,
                meter=budget,
                **whose,
                **place,
            )
            async with store:
                yield Learner(store, extractor, budget)
    finally:
        await extractor.aclose()


class LearningProcess:
    """Keeps a learning process running while there is work, and holds its last report."""

    def __init__(self, settings: Settings) -> None:
        # These settings may hold API keys; the process takes keys of models from the environment.
        self._settings_line = settings.model_dump_json(exclude={"chat", "proxy"}).encode() + b"\n"
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._waking: asyncio.TimerHandle | None = None
        self.embedder_failures = 0
        self.unusable_texts = 0
        self.is_embedder_failing = False
        self.is_disk_full = False
        """As in the last report of the process."""
        self.is_alive = False
        """True from the first report of the process until it ends."""
        self._is_resting = True
        self._has_rested = False
        self._news = asyncio.Event()
        self.count_tokens: Callable[[int], object] = lambda _: None
        """Called with the model tokens used since the previous report."""

    @property
    def is_able(self) -> bool:
        """Whether the process is alive, or there is no work for it."""
        return self.is_alive or self._is_resting

    @property
    def is_resting(self) -> bool:
        """Whether no process runs because there is no work."""
        return self._is_resting

    def start(self, has_work: Callable[[], Awaitable[bool]] | None = None) -> None:
        """Start the process as soon as there is work, or now without `has_work`. Twice is harmless."""
        if self._task is None:
            self._task = asyncio.create_task(self._run_when_needed(has_work))

    def wake(self) -> None:
        """Make the process look for work now; otherwise it looks every second. Never waits."""
        self._news.set()
        if self._waking is None and self.is_alive:
            self._waking = asyncio.get_running_loop().call_later(_WAKE_DELAY, self._send_wake)

    def _send_wake(self) -> None:
        self._waking = None
        stdin = self._process.stdin if self._process is not None else None
        # If it has not read the last one yet, it will look soon.
        if stdin is not None and not stdin.is_closing() and not stdin.transport.get_write_buffer_size():
            stdin.write(b"\n")

    async def stop(self) -> None:
        """Let the process hand back its runs, and wait until it has ended. A second call does nothing."""
        task, self._task = self._task, None
        process, self._process = self._process, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        if process is not None:
            await _end(process)

    async def _run_when_needed(self, has_work: Callable[[], Awaitable[bool]] | None) -> None:
        while True:
            while has_work is not None and not await _ask(has_work):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_INTERVAL):
                        await self._news.wait()
                self._news.clear()
            self._is_resting = False
            await self._keep_running()
            self._is_resting = True

    async def _keep_running(self) -> None:
        """Keep a process running until it ends because there is no work."""
        pause = _FIRST_PAUSE
        while True:
            if await self._run_once():
                pause = _FIRST_PAUSE
            if self._has_rested:
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _run_once(self) -> bool:
        """Run a process until it ends; returns whether it has reported anything."""
        try:
            self._process = await self._launch()
        except OSError as error:  # the system has no memory or process id left
            _log.error("learning process could not start, will retry", extra={"reason": str(error)})
            return False
        try:
            has_reported = await self._read_reports(self._process)
        finally:
            self.is_alive = False
        code = await self._process.wait()
        if self._has_rested:
            _log.info("learning process ended, there is no work")
        else:
            _log.error("learning process ended unexpectedly, restarting", extra={"exit_code": code})
        return has_reported

    async def _launch(self) -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "recollect.server.learner", stdin=PIPE, stdout=PIPE
        )
        assert process.stdin is not None
        process.stdin.write(self._settings_line)
        return process

    async def _read_reports(self, process: Process) -> bool:
        """Apply the reports of the process until it ends; returns whether there was any."""
        assert process.stdout is not None
        self._has_rested = False
        has_reported, tokens = False, 0
        while line := await process.stdout.readline():
            report = json.loads(line)
            self.embedder_failures = report["failures"]
            self.unusable_texts = report["unusable"]
            self.is_embedder_failing = report["is_failing"]
            self.is_disk_full = report["is_disk_full"]
            self._has_rested = report["is_resting"]
            self.is_alive = True
            self.count_tokens(report["tokens"] - tokens)
            has_reported, tokens = True, report["tokens"]
        return has_reported


async def _ask(has_work: Callable[[], Awaitable[bool]]) -> bool:
    """Whether there is work. If the database does not answer, the process waits for it as well as we do."""
    try:
        return await has_work()
    except FileReplacedError:  # a new process would create an empty file in its place
        return False
    except (RecollectError, OSError):
        return True


async def _end(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(STOP_TIMEOUT):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()  # its leases expire, and other workers take over
        await process.wait()


# --- inside the process ---


async def _learn() -> None:
    """Run the workers until the input ends or SIGTERM arrives."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)  # the parent handles it
    stdin = await _open_stdin()
    settings = Settings.model_validate_json(await stdin.readline())
    configure_logging(settings.logging)
    switch_threads_often()
    check_file_exists(settings.database.url)  # the parent has opened it
    async with open_learner(settings) as learner:
        _lower_priority()  # not before: work is waiting while the process loads
        learner.store.start()
        idleness = _Idleness(learner.store, settings.memory.idle_seconds)
        watching = asyncio.create_task(_obey(stdin, learner.store, idleness, ended))
        try:
            await _report_until(ended, learner, idleness)
        finally:
            watching.cancel()


class _Idleness:
    """Says when there has been no work for so long that the process may end. With 0 seconds, never."""

    def __init__(self, store: MemoryStore, seconds: float) -> None:
        self._store = store
        self._seconds = seconds
        self.note_work()

    def note_work(self) -> None:
        """There is work."""
        self._since = time.monotonic()

    async def is_over(self) -> bool:
        """Whether the process may end."""
        if not self._seconds:
            return False
        if await _ask(self._store.monitor.has_work):
            self.note_work()
        return time.monotonic() - self._since >= self._seconds


def _lower_priority() -> None:
    if hasattr(os, "nice"):
        os.nice(_NICE)


async def _open_stdin() -> asyncio.StreamReader:
    stdin = asyncio.StreamReader(limit=_LARGEST_SETTINGS)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    return stdin


async def _obey(
    stdin: asyncio.StreamReader, store: MemoryStore, idleness: _Idleness, ended: asyncio.Event
) -> None:
    """Look for work at each sign of the parent, until the input ends."""
    while await stdin.read(_LARGEST_SETTINGS):
        idleness.note_work()
        store.start()
    ended.set()


async def _report_until(ended: asyncio.Event, learner: Learner, idleness: _Idleness) -> None:
    while not ended.is_set():
        is_resting = await idleness.is_over()
        with contextlib.suppress(BrokenPipeError):  # the parent is gone: the input ends, too
            print(json.dumps({**_report(learner), "is_resting": is_resting}), flush=True)
        if is_resting:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REPORT_INTERVAL):
                await ended.wait()


def _report(learner: Learner) -> dict[str, Any]:
    monitor = learner.store.monitor
    is_disk_full = monitor.is_disk_full
    monitor.clear_disk_full()  # the next write that fails sets it again
    return {
        "tokens": learner.budget.spent_here,
        "failures": monitor.embedder_failures,
        "unusable": monitor.unusable_texts,
        "is_failing": monitor.is_embedder_failing,
        "is_disk_full": is_disk_full,
    }


if __name__ == "__main__":
    try:
        asyncio.run(_learn())
    except FileReplacedError as error:
        sys.exit(str(error))
