"""Running the service: where it listens, whom it lets in, and how it ends.

At the first SIGTERM or SIGINT, `/readyz` says that the service is stopping, and no more connections are
taken. Requests and chat turns that are running get `grace_seconds`; then the turns that are left are
interrupted, which whoever waits for them is told, requests that do not end then are cut off, runs of learning
are handed back, and the process ends with 0. A second signal ends it at once, which loses nothing that was
acknowledged.
"""

import asyncio
import gc
import logging
import math
import os
import socket
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from fastapi import FastAPI
from uvicorn import Config, Server

from ...errors import RecollectError
from ...migrations import check_revision
from ..app import create_app
from ..service import Service
from ..settings import ServerSettings, Settings
from ..telemetry.logs import configure_logging, describe_error
from ..telemetry.spans import start_traces
from .connections import TimedConnection
from .listener import address_of, is_loopback, listen

_log = logging.getLogger("recollect.server")
TO_TELL_INTERRUPTION = 5
"""Seconds after the grace in which those whose turns were interrupted are told so."""

_KEEP_ALIVE = 75  # seconds: longer than proxies keep a connection, so that it is they who close it
_TO_ANSWER_SLOWNESS = 5.0  # seconds in which one whose body is late is told so, before the connection ends
_BACKSTOP = 10  # connections for each request that may run: beyond that not even a refusal is worth it


class ServeError(RecollectError):
    """The service cannot be started as it is configured."""


def serve(settings: Settings) -> int:
    """Run the service until a signal ends it; returns the exit code of the process."""
    configure_logging(settings.logging)
    stop_traces = start_traces(settings.telemetry)
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(_serve(settings))
    finally:
        stop_traces()


async def _serve(settings: Settings) -> int:
    asyncio.get_running_loop().set_exception_handler(_log_unhandled)
    if not settings.database.create_tables:
        await check_revision(settings.database.url)
    app = create_app(settings)
    _prepare_routes(app)
    service: Service = app.state.service
    server = _StoppableServer(_configured(app, settings.server), service)
    try:
        await _refuse_to_be_open(service)
        listener = listen(settings.server.host, settings.server.port)
    except BaseException:
        await service.aclose()
        raise
    with listener:
        await server.serve([listener])
    return 0 if server.started else 1


class _StoppableServer(Server):
    """uvicorn's server, which says when it listens, says first that it stops, and ends at a second signal."""

    def __init__(self, config: Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say where."""
        await super().startup(sockets)
        settle_heap()
        self._service.metrics.reset_lag()
        if self.started and sockets:
            print(f"Recollect listens on {address_of(sockets[0])}", flush=True)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's own name
        """Stop; if that has been asked for before, at once."""
        if self._service.is_stopping:
            os._exit(128 + sig)
        self._service.begin_to_stop()
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for what is running; where the grace does not suffice, turns are interrupted first."""
        self._service.begin_to_stop()  # also where it was no signal
        interrupting = asyncio.create_task(self._service.interrupt_turns())
        try:
            await super().shutdown(sockets)
        finally:
            interrupting.cancel()
            await asyncio.wait([interrupting])


def settle_heap() -> None:
    """Take all that is loaded by now out of garbage collection, which would take 0.2 s to go through it."""
    gc.collect()
    gc.freeze()


def _configured(app: FastAPI, settings: ServerSettings) -> Config:
    connection = type("Connection", (TimedConnection,), {"receive_seconds": _arrival_seconds(settings)})
    return Config(
        app,
        http=connection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nothing here depends on where a request came from
        limit_concurrency=_BACKSTOP * settings.max_concurrency,  # the gate counts requests, and says more
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=math.ceil(settings.grace_seconds) + TO_TELL_INTERRUPTION,
    )


def _prepare_routes(app: FastAPI) -> None:
    """FastAPI makes its routes ready when they are first asked, which would hold up whoever comes first."""
    for route in app.router.routes:
        route.matches({"type": "http", "method": "GET", "path": "/", "root_path": "", "headers": []})
    app.openapi()  # takes some tenths of a second, and is kept


def _arrival_seconds(settings: ServerSettings) -> float:
    """A body that is late is answered with 408 by the gate; the connection ends a little later."""
    return settings.receive_seconds + _TO_ANSWER_SLOWNESS


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.new_event_loop


# --- the address ---


async def _refuse_to_be_open(service: Service) -> None:
    """Without keys anybody who reaches the service may do anything, so only this machine may reach it."""
    if await service.keys.any():
        return
    host = service.settings.server.host
    if not is_loopback(host):
        raise ServeError(
            f"there are no keys, so the service cannot listen on {host}: make one with"
            " `recollect keys create --tenant NAME --scope admin`, or listen on 127.0.0.1"
        )
    _log.warning("there are no keys: the service is open to everybody on this machine")
    print("No keys: open to everybody on this machine. `recollect keys create` closes it.", flush=True)


def _log_unhandled(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What asyncio would log shows the error of a task with its words."""
    error = context.get("exception")
    told = {} if error is None else {"error": describe_error(error)}
    _log.error("something in the background failed", extra=told)
