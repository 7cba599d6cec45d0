"""Run the MCP server over standard input and output, or over HTTP. Logs go to standard error."""

import logging
import os
import signal
import socket
import sys
from types import FrameType
from typing import Any

import uvicorn
from mcp.server.stdio import stdio_server

from ..server.access.keys import KeyStore
from ..server.settings import Settings
from ..server.transport.key_check import check_keys
from ..server.transport.listener import address_of, listen
from ..sql.sqlalchemy.revisions import check_revision
from .access import Access, PinnedOwner
from .http_app import PATH, mcp_app
from .server import build_server
from .stores import MemoryStores, RemoteStores, Stores

_GRACE = 10  # seconds for running requests at shutdown


async def run_stdio(settings: Settings, access: Access) -> None:
    """Serve the client that started this process, until its input ends."""
    _log_to_stderr(settings.logging.level)
    # A thread blocks on reading a line and cannot be woken, so a signal kills the process. Nothing that was
    # acknowledged is lost.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    await _check_schema(settings)
    await serve_stdio(settings, access)


async def run_stdio_for_service(url: str, key: str | None, access: Access) -> None:
    """As `run_stdio`, with the memory in a service."""
    _log_to_stderr("warning")
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    async with RemoteStores(url, key) as stores:
        await _serve_stdio(stores, access)


async def run_http(settings: Settings, pinned: PinnedOwner, host: str, port: int) -> None:
    """Serve HTTP clients on an address until a signal. If there are keys, clients need one."""
    _log_to_stderr(settings.logging.level)
    await _check_schema(settings)
    await _check_keys(settings, host)
    with listen(host, port) as listener:
        app = mcp_app(settings, pinned, host=host)
        await _Server(_uvicorn_config(app)).serve([listener])


class _Server(uvicorn.Server):
    """uvicorn's server: the first signal stops it gracefully, the second one at once."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, and say so. Before that, clients would be refused."""
        await super().startup(sockets)
        if self.started and sockets:
            _print(f"Recollect's MCP server listens on {address_of(sockets[0])}{PATH}")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's own name
        """Stop gracefully; at a second signal, exit at once."""
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True


def _uvicorn_config(app: Any) -> uvicorn.Config:
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


async def _check_schema(settings: Settings) -> None:
    if not settings.database.create_tables:
        await check_revision(settings.database.url)


async def _check_keys(settings: Settings, host: str) -> None:
    """Refuse to listen beyond loopback without keys, and say if there are none."""
    require = settings.access.require_keys
    async with KeyStore(settings.database.url, **settings.database.options(), require_keys=require) as keys:
        note = await check_keys(keys, settings, host)
    if note is not None:
        _print(note)


# --- output ---


class _WithoutContents(logging.Formatter):
    """Logs only the type of an error: its message and stack may quote contents."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's own name
        """The name of the exception class."""
        return f"({ei[0].__name__})"


def _log_to_stderr(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_WithoutContents("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler])
    # At lower levels, the package logs the messages of the protocol.
    logging.getLogger("mcp").setLevel(logging.WARNING)


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- standard input and output ---

_log = logging.getLogger(__name__)


async def serve_stdio(settings: Settings, access: Access) -> None:
    """Serve the client on standard input and output. Standard output carries only the protocol."""
    async with MemoryStores(settings, access.caller.tenant) as stores:
        await _serve_stdio(stores, access)


async def _serve_stdio(stores: Stores, access: Access) -> None:
    await stores.for_tenant(access.caller.tenant).coverage()  # fails now if the store is unusable
    server = build_server(stores, lambda _: access)
    try:
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())
    except* (BrokenPipeError, ConnectionError):
        _log.info("client disconnected")
