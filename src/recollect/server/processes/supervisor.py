"""The supervisor: keeps several server processes and one learning process running.

It owns the listening socket, and serves no request itself. A server process that ends is started again.
SIGTERM and SIGINT stop all processes gracefully; a second one ends them at once. SIGHUP reads the
configuration again, starts new processes on the same socket and, when all of them are ready, lets the old
ones finish. No request is refused meanwhile. If the new processes cannot start, the old ones continue.
"""

import asyncio
import logging
import math
import os
import signal
import socket
import time
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any

from ...errors import RecollectError
from ...sql.urls import is_in_memory
from ..access.shared_limits import create_shared_buckets
from ..learner import LearningProcess
from ..settings import Settings
from ..telemetry.logs import configure_logging
from ..telemetry.processes import Snapshot
from ..transport.listener import listen
from .child import ServerProcess, StartError
from .configuration import ConfigurationSource
from .generation import Generation
from .learner_state import learner_state

_log = logging.getLogger("recollect.supervisor")
_LEARNER_INTERVAL = 1.0  # seconds between two reports of the learner's state
_RECENT = 30.0  # seconds: work that was reported before has been seen by a learning process that ended
_AFTER_GRACE = 30.0  # seconds after draining and grace until a process that does not end is killed


def supervise(source: ConfigurationSource) -> int:
    """Run a service of several processes until a signal stops it; returns the exit code."""
    settings = source.load()
    if is_in_memory(settings.database.url):
        raise StartError("several server processes need a database that they can share: a file or a server")
    configure_logging(settings.logging)
    rates = create_shared_buckets()
    try:
        with listen(settings.server.host, settings.server.port) as listener:
            return asyncio.run(_Supervisor(source, settings, listener, rates).run())
    finally:
        os.close(rates)


class _Supervisor:
    def __init__(
        self, source: ConfigurationSource, settings: Settings, listener: socket.socket, rates: int
    ) -> None:
        self._source = source
        self._settings = settings
        self._listener = listener
        self._rates = rates
        self._generations: list[Generation] = []
        """The current one is the last. The others are draining."""
        self._learning: LearningProcess | None = None
        self._told_work_at = -math.inf
        """When a server process last had something to learn."""
        self._learner_tokens = 0
        self._restarts = 0
        self._restart_asked = asyncio.Event()
        self._background: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    async def run(self) -> int:
        """Supervise until a signal arrives."""
        work = asyncio.create_task(self._work())
        self._handle_signals(work)
        try:
            await work
        except asyncio.CancelledError:
            if not self._is_stopping:
                raise
        finally:
            await self._stop()
        return 0

    def _handle_signals(self, work: "asyncio.Task[None]") -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop_or_exit, number, work)
        loop.add_signal_handler(signal.SIGHUP, self._restart_asked.set)

    def _stop_or_exit(self, number: signal.Signals, work: "asyncio.Task[None]") -> None:
        if self._is_stopping:
            for process in self._processes():
                process.terminate()  # a second time, so that it exits at once
            os._exit(128 + number)
        self._is_stopping = True
        work.cancel()

    async def _work(self) -> None:
        await self._start_generation(is_quiet=False)
        self._start_learning()
        self._run_in_background(self._report_learner())
        while True:
            await self._restart_asked.wait()
            self._restart_asked.clear()
            await self._restart()

    # --- server processes ---

    async def _start_generation(self, *, is_quiet: bool) -> None:
        generation = Generation(self._launch, self._settings.server.workers)
        self._generations.append(generation)
        try:
            await generation.start(is_quiet=is_quiet)
        except BaseException:
            self._generations.remove(generation)
            raise

    async def _launch(self, is_quiet: bool) -> ServerProcess:
        listener, rates = self._listener.fileno(), self._rates
        start = {
            "configuration": self._source.to_json(),
            "listener": listener,
            "rates": rates,
            "is_quiet": is_quiet,
        }
        process = await ServerProcess.launch(start, (listener, rates))
        process.on_ask = self._all_metrics
        process.on_work = self._wake_learner
        await process.wait_until_ready()
        return process

    def _processes(self) -> list[ServerProcess]:
        return [process for generation in self._generations for process in generation.processes]

    async def _restart(self) -> None:
        """Replace all processes by new ones with the present configuration."""
        before = self._settings
        try:
            self._settings = self._source.load()
            self._check_unchanged(before)
            await self._start_generation(is_quiet=True)
        except (RecollectError, OSError) as error:
            self._settings = before
            _log.error("restart failed, the old processes continue", extra={"reason": str(error)})
            return
        configure_logging(self._settings.logging)
        for old in self._generations[:-1]:
            self._run_in_background(self._drain(old, before))
        if self._learning is not None:
            await self._learning.stop()
        self._start_learning()
        _log.info("restarted", extra={"server_processes": self._settings.server.workers})

    def _check_unchanged(self, before: Settings) -> None:
        """Refuse what only a new supervisor can apply."""
        now = self._settings
        if not now.server.workers:
            raise StartError("server.workers cannot become 0 without stopping the service")
        if (now.server.host, now.server.port) != (before.server.host, before.server.port):
            raise StartError("server.host and server.port cannot change without stopping the service")
        if now.database.url != before.database.url:
            raise StartError("database.url cannot change without stopping the service")

    async def _drain(self, generation: Generation, settings: Settings) -> None:
        await generation.end(lambda process: process.send("drain"), _seconds_to_end(settings))
        self._generations.remove(generation)
        self._restarts += generation.restarts

    async def _stop(self) -> None:
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        end = partial(Generation.end, ask=ServerProcess.terminate, seconds=_seconds_to_end(self._settings))
        await asyncio.gather(*(end(generation) for generation in self._generations))
        if self._learning is not None:
            await self._learning.stop()

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # --- the learning process ---

    def _start_learning(self) -> None:
        self._learning = LearningProcess(self._settings) if self._settings.memory.workers else None
        if self._learning is not None:
            self._learning.count_tokens = self._count_tokens
            self._learning.start(self._has_work)

    async def _has_work(self) -> bool:
        return time.monotonic() - self._told_work_at < _RECENT

    def _wake_learner(self) -> None:
        self._told_work_at = time.monotonic()
        if self._learning is not None:
            self._learning.wake()

    def _count_tokens(self, tokens: int) -> None:
        self._learner_tokens += tokens

    async def _report_learner(self) -> None:
        """Tell all server processes the state of the learning process, again and again."""
        while True:
            if self._learning is not None:
                for process in self._processes():
                    process.send("learner", learner_state(self._learning))
            await asyncio.sleep(_LEARNER_INTERVAL)

    # --- metrics ---

    def _all_metrics(self) -> Mapping[str, Snapshot]:
        """The latest metrics of all processes by their ids, and those of the supervisor."""
        processes = self._processes()
        restarts = self._restarts + sum(generation.restarts for generation in self._generations)
        return {
            **{str(process.pid): process.metrics for process in processes},
            "learner": [
                _metric("recollect_model_tokens", "Model tokens used.", "counter", self._learner_tokens)
            ],
            "supervisor": supervisor_metrics(len(processes), restarts),
        }


def supervisor_metrics(processes: int, restarts: int) -> Snapshot:
    """The metrics of the supervisor itself."""
    ended = "Server processes that ended unexpectedly and were started again."
    return [
        _metric("recollect_server_processes", "Running server processes.", "gauge", processes),
        _metric("recollect_server_process_restarts", ended, "counter", restarts),
    ]


def _metric(name: str, help_text: str, kind: str, value: float) -> list[object]:
    sample = f"{name}_total" if kind == "counter" else name
    return [name, help_text, kind, [[sample, {}, value]]]


def _seconds_to_end(settings: Settings) -> float:
    """Draining takes up to the grace period, and stopping as long again."""
    return 2 * settings.server.grace_seconds + _AFTER_GRACE
