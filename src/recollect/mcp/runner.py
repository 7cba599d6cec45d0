"""Running the server until its client goes away, or a signal comes. Logs go to standard error."""

import logging
import os
import signal
import sys
from types import FrameType
from typing import Any

import uvicorn
from mcp.server.stdio import stdio_server

from ..migrations import check_revision
from ..server.access.keys import KeyStore
from ..server.settings import Settings
from ..server.transport.listener import ListenError, address_of, is_loopback, listen
from .access import Access, Pinned
from .http_app import PATH, mcp_app
from .server import build_server
from .stores import Memories

_GRACE = 10  # seconds that running requests get when the server ends


async def run_stdio(settings: Settings, access: Access) -> None:
    """Serve the client that has started this process."""
    _log_to_stderr(settings.logging.level)
    # A line of input is waited for in a thread that nothing can wake, so a signal ends the process as it is.
    # Nothing is lost by that which was acknowledged.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    await _check(settings)
    await serve_stdio(settings, access)


async def run_http(settings: Settings, pinned: Pinned, host: str, port: int) -> None:
    """Serve all who reach an address, and have a key if there are any."""
    _log_to_stderr(settings.logging.level)
    await _check(settings)
    await _refuse_to_be_open(settings, host)
    with listen(host, port) as listener:
        app = mcp_app(settings, pinned, host=host)
        server = _Server(_configured(app))
        _say(f"Recollect's MCP server listens on {address_of(listener)}{PATH}")
        await server.serve([listener])


class _Server(uvicorn.Server):
    """uvicorn's server, which ends in order at the first signal, and at once at the second."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's own name
        """Stop; if that has been asked for before, at once."""
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True


def _configured(app: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE,
    )


async def _check(settings: Settings) -> None:
    if not settings.database.create_tables:
        await check_revision(settings.database.url)


async def _refuse_to_be_open(settings: Settings, host: str) -> None:
    """Without keys anybody who reaches the server may do anything, so only this machine may reach it."""
    async with KeyStore(settings.database.url, **settings.database.options()) as keys:
        if await keys.any():
            return
    if not is_loopback(host):
        raise ListenError(
            f"there are no keys, so the server cannot listen on {host}: make one with `recollect keys create`"
            " --tenant NAME --scope write, or listen on 127.0.0.1"
        )
    _say("No keys: open to everybody on this machine. `recollect keys create` closes it.")


# --- what is said ---


class _WithoutContents(logging.Formatter):
    """Tells of an error what it is, and not its words or its stack, which may quote what users said."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's own name
        """The name of the error."""
        return f"({ei[0].__name__})"


def _log_to_stderr(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_WithoutContents("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler])
    # Below that, the package writes down what is sent.
    logging.getLogger("mcp").setLevel(logging.WARNING)


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


# --- standard input and output ---

_log = logging.getLogger(__name__)


async def serve_stdio(settings: Settings, access: Access) -> None:
    """Serve the client at the other end until it goes away."""
    async with Memories(settings, access.caller.tenant) as memories:
        await memories.of(access.caller.tenant).coverage()  # what is wrong with the database is told now
        server = build_server(memories, lambda _: access)
        try:
            async with stdio_server() as (received, sent):
                await server.run(received, sent, server.create_initialization_options())
        except* (BrokenPipeError, ConnectionError):
            _log.info("the client is gone")
