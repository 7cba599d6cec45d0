"""Run the service: startup, checks, and graceful shutdown.

At the first SIGTERM or SIGINT, `/readyz` reports that the service is stopping, and no new connections are
accepted. Running requests and chat turns get `grace_seconds`. Then the remaining turns are interrupted and
their callers get `turn.failed`, remaining requests are cut off, runs are handed back, and the process exits
with 0. A second signal exits at once; nothing that was acknowledged is lost.
"""

import asyncio
import gc
import logging
import math
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

from fastapi import FastAPI
from uvicorn import Config, Server

from ...sql.sqlalchemy.revisions import check_revision
from ...threads import switch_threads_often
from ..app import create_app
from ..learner import LearningProcess
from ..service import Service
from ..settings import ServerSettings, Settings
from ..telemetry.logs import configure_logging, describe_error
from ..telemetry.spans import start_traces
from .announcement import announce
from .connections import TimedConnection
from .key_check import check_keys
from .listener import listen

_log = logging.getLogger("recollect.server")
INTERRUPTION_SECONDS = 5
"""Seconds after the grace in which interrupted turns send their callers `turn.failed`."""

_KEEP_ALIVE = 75  # seconds: longer than those of common proxies, so that the proxy closes first
_TIMEOUT_RESPONSE_SECONDS = 5.0  # to send a 408 for a slow body before the connection is closed
_DRAIN_INTERVAL = 0.05  # seconds
_CLOSE = (b"connection", b"close")
_NO_MODEL_KEY = "No API key for the model: set chat.api_key or OPENAI_API_KEY. Until then, chats fail."
_CONNECTIONS_PER_REQUEST = 10  # beyond that, uvicorn refuses connections itself


def serve(settings: Settings) -> int:
    """Run the service until a signal stops it; returns the exit code of the process."""
    configure_logging(settings.logging)
    switch_threads_often()
    stop_traces = start_traces(settings.telemetry)
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(_serve(settings))
    finally:
        stop_traces()


async def _serve(settings: Settings) -> int:
    await check_database(settings)
    server = await build_server(settings)
    try:
        listener = listen(settings.server.host, settings.server.port)
    except BaseException:
        await server.service.aclose()
        raise
    with listener:
        await server.serve([listener])
    return 0 if server.started else 1


async def check_database(settings: Settings) -> None:
    """Refuse a database server whose schema is of another version."""
    asyncio.get_running_loop().set_exception_handler(_log_unhandled)
    if not settings.database.create_tables:
        await check_revision(settings.database.url)


async def build_server(
    settings: Settings,
    *,
    is_quiet: bool = False,
    is_supervised: bool = False,
    learning: LearningProcess | None = None,
) -> "GracefulServer":
    """Create the service and its server; a quiet one announces nothing.

    Raises a `ListenError` if the service would be open beyond this machine.
    """
    app = create_app(settings, learning=learning)
    _prepare_routes(app)
    service: Service = app.state.service
    server = GracefulServer(_uvicorn_config(app, settings.server), service, is_quiet, is_supervised)
    try:
        await _check_keys(service, is_quiet=is_quiet)
    except BaseException:
        await service.aclose()
        raise
    return server


class GracefulServer(Server):
    """uvicorn's server with our startup message and shutdown sequence."""

    def __init__(self, config: Config, service: Service, is_quiet: bool, is_supervised: bool) -> None:
        super().__init__(config)
        self.service = service
        self.on_ready: Callable[[], None] = lambda: None
        """Called when connections are accepted."""
        self._is_quiet = is_quiet
        self._is_supervised = is_supervised
        self._draining: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening, and print the address."""
        await super().startup(sockets)
        freeze_heap()
        self.service.metrics.reset_lag()
        if not self.started:
            return
        if sockets and not self._is_quiet:
            print(announce(self.service.settings, sockets[0]), flush=True)
        self.on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's own name
        """Stop gracefully; at a second signal, exit at once."""
        if self._is_supervised and sig == signal.SIGINT:
            return  # a terminal sends it to every process: it is for the supervisor
        if self.service.is_stopping:
            os._exit(128 + sig)
        self.stop()

    def stop(self) -> None:
        """Stop gracefully. A second call does nothing."""
        self.service.begin_to_stop()
        self.should_exit = True

    def drain(self) -> None:
        """Accept no more connections, and stop when the present ones have ended.

        Each connection gets the response to one more request, which tells the client to open a new one. So
        no request meets a closed connection. Connections without a request end with the grace period.
        """
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        for listening in self.servers:
            listening.close()
        self.config.encoded_headers.append(_CLOSE)
        self.server_state.default_headers = [*self.server_state.default_headers, _CLOSE]
        with suppress(TimeoutError):
            async with asyncio.timeout(self.service.settings.server.grace_seconds):
                while self.server_state.connections:  # noqa: ASYNC110 - uvicorn has no event for it
                    await asyncio.sleep(_DRAIN_INTERVAL)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for running requests. Turns that exceed the grace are interrupted first."""
        self.service.begin_to_stop()  # also if no signal was the cause
        interrupting = asyncio.create_task(self.service.interrupt_turns())
        try:
            await super().shutdown(sockets)
        finally:
            interrupting.cancel()
            await asyncio.wait([interrupting])


def freeze_heap() -> None:
    """Exclude all objects loaded so far from garbage collection, which would take 0.2 s to scan them."""
    gc.collect()
    gc.freeze()


def _uvicorn_config(app: FastAPI, settings: ServerSettings) -> Config:
    connection = type("Connection", (TimedConnection,), {"receive_seconds": _receive_seconds(settings)})
    return Config(
        app,
        http=connection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # no decision depends on the client address
        limit_concurrency=_CONNECTIONS_PER_REQUEST * settings.max_concurrency,  # the gate applies the limit
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=math.ceil(settings.grace_seconds) + INTERRUPTION_SECONDS,
    )


def _prepare_routes(app: FastAPI) -> None:
    """Prepare the routes now. FastAPI would do it at the first request, and delay that."""
    for route in app.router.routes:
        route.matches({"type": "http", "method": "GET", "path": "/", "root_path": "", "headers": []})


def _receive_seconds(settings: ServerSettings) -> float:
    """The gate answers a slow body with 408. The connection is closed a little later."""
    return settings.receive_seconds + _TIMEOUT_RESPONSE_SECONDS


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The event loop of a server."""
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.new_event_loop


# --- access without keys ---


async def _check_keys(service: Service, *, is_quiet: bool) -> None:
    """Refuse to listen beyond loopback without keys, and say if there are none."""
    note = await check_keys(service.keys, service.settings, service.settings.server.host)
    if service.provider.lacks_model_key and not is_quiet:
        _log.warning("no API key for the model of chats")
        print(_NO_MODEL_KEY, flush=True)
    if note is None or is_quiet:
        return
    if await service.keys.are_lost():
        _log.error("API keys are missing from the database")
    else:
        _log.warning("no API keys configured, every local process can read and write")
    print(note, flush=True)


def _log_unhandled(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an unhandled error without its message, which asyncio's own handler would include."""
    error = context.get("exception")
    fields = {} if error is None else {"error": describe_error(error)}
    _log.error("background task failed unexpectedly", extra=fields)
