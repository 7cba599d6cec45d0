"""A server process that a supervisor started. It serves on the inherited listening socket.

It ends gracefully at SIGTERM, and when the supervisor is gone. It ignores SIGINT, which a terminal sends to
every process: the supervisor handles it.
"""

import asyncio
import itertools
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ...errors import RecollectError
from ...sql.sqlite.file_identity import check_file_exists
from ...threads import switch_threads_often
from ..access.shared_limits import SharedRateLimiter
from ..service import Service
from ..settings import Settings
from ..telemetry.logs import configure_logging
from ..telemetry.processes import Snapshot, snapshot
from ..telemetry.spans import start_traces
from ..transport.runner import GracefulServer, build_server, check_database, loop_factory
from .configuration import ConfigurationSource
from .learner_state import LearnerState
from .link import Link

_PUBLISH_INTERVAL = 5.0  # seconds between two reports of metrics
_ANSWER_SECONDS = 2.0  # to wait for the metrics of the other processes


class Supervised:
    """The link of a running server with its supervisor."""

    def __init__(self, link: Link, service: Service, server: GracefulServer) -> None:
        self._link = link
        self._service = service
        self._server = server
        self._numbers = itertools.count()
        self._asked: dict[int, asyncio.Future[Mapping[str, Snapshot]]] = {}

    async def exchange(self, own: Snapshot) -> Mapping[str, Snapshot]:
        """Publish this process's metrics, and return the latest of all. Without an answer: only its own."""
        number = next(self._numbers)
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        self._link.send("ask", {"number": number, "metrics": own})
        try:
            return await asyncio.wait_for(answer, _ANSWER_SECONDS)
        except TimeoutError:
            return {str(os.getpid()): own}
        finally:
            del self._asked[number]

    async def publish(self) -> None:
        """Send this process's metrics at intervals, until cancelled."""
        while True:
            self._link.send("metrics", snapshot(self._service.metrics))
            await asyncio.sleep(_PUBLISH_INTERVAL)

    async def listen(self) -> None:
        """Follow the supervisor's messages. When it is gone, stop the server."""
        async for kind, content in self._link.messages():
            if kind == "learner" and isinstance(self._service.learning, LearnerState):
                self._service.learning.set_state(content)
            elif kind == "drain":
                self._server.drain()
            elif kind == "answer":
                self._resolve(content["number"], content["metrics"])
        self._server.stop()

    def _resolve(self, number: int, metrics: Mapping[str, Snapshot]) -> None:
        waiting = self._asked.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(metrics)


def main(descriptor: int) -> int:
    """Serve as the supervisor at the other end of a socket says; returns the exit code."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_run(socket.socket(fileno=descriptor)))


async def _run(connection: socket.socket) -> int:
    link = await Link.open(connection)
    message = await link.receive()
    if message is None:
        return 1
    try:
        return await _serve(link, message[1])
    except (RecollectError, ValueError, OSError) as error:
        link.send("failed", str(error))
        return 1
    finally:
        link.close()


async def _serve(link: Link, start: Mapping[str, Any]) -> int:
    settings = _as_supervised(ConfigurationSource.from_json(start["configuration"]).load())
    configure_logging(settings.logging)
    switch_threads_often()
    if start["is_quiet"]:  # not the first process, which may create the file
        check_file_exists(settings.database.url)
    stop_traces = start_traces(settings.telemetry)
    try:
        await check_database(settings)
        server = await build_server(
            settings,
            is_quiet=start["is_quiet"],
            is_supervised=True,
            learning=LearnerState(settings, lambda: link.send("work")) if settings.memory.workers else None,
        )
        server.service.rates = SharedRateLimiter(start["rates"])
        with socket.socket(fileno=start["listener"]) as listener:
            return await _serve_linked(link, server, listener)
    finally:
        stop_traces()


async def _serve_linked(link: Link, server: GracefulServer, listener: socket.socket) -> int:
    supervised = Supervised(link, server.service, server)
    server.service.siblings = supervised
    server.on_ready = lambda: link.send("ready")
    tasks = [asyncio.create_task(supervised.listen()), asyncio.create_task(supervised.publish())]
    try:
        await server.serve([listener])
    finally:
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait(tasks)
    return 0 if server.started else 1


def _as_supervised(settings: Settings) -> Settings:
    """With several server processes, learning always has a process of its own: one for all."""
    memory = settings.memory.model_copy(update={"own_process": True})
    return settings.model_copy(update={"memory": memory})


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
