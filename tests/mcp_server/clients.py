"""Real clients of the `mcp` package, and servers for them: in this process, or as the command runs them.

This folder is no package: it would stand before the package `mcp` on the path.
"""

import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from recollect.mcp.access import PinnedOwner, local_access
from recollect.mcp.http_app import PATH, mcp_app
from recollect.mcp.server import build_server
from recollect.mcp.stores import MemoryStores
from recollect.server.settings import Settings, load_settings
from recollect.server.transport.listener import address_of, listen

COMMAND = [sys.executable, "-m", "recollect", "mcp"]
MODES = ("auto", "legacy")
"""The protocol of 2026, and the one with a handshake before it."""


def settings_for(url: Path | str, **more: str) -> Settings:
    """Settings with search by words alone, which needs no model to be loaded."""
    variables = {"RECOLLECT_MEMORY__EMBEDDER": "none", "RECOLLECT_DATABASE__URL": str(url)}
    return load_settings(None, variables | more)


@asynccontextmanager
async def client_of(
    memories: MemoryStores, user_id: str = "ada", mode: str = "auto"
) -> AsyncIterator[Client]:
    """A client of a server in this process."""
    access = local_access(PinnedOwner(user_id))
    async with Client(build_server(memories, lambda _: access), mode=mode) as client:
        yield client


def environment(url: Path | str, **more: str) -> dict[str, str]:
    """The environment of a command, in which nothing of ours is set but what a test says."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    return kept | {"RECOLLECT_URL": str(url), "RECOLLECT_MEMORY__EMBEDDER": "none"} | more


def over_stdio(url: Path | str, *arguments: str, mode: str = "auto", **more: str) -> Client:
    """A client that starts the command."""
    command, *first = COMMAND
    parameters = StdioServerParameters(
        command=command, args=[*first, *arguments], env=environment(url, **more)
    )
    return Client(parameters, mode=mode)


@contextmanager
def http_server(url: Path | str, *arguments: str, **more: str) -> Iterator[str]:
    """The command on a free port of loopback; gives the address, and ends it with SIGTERM."""
    command = [*COMMAND, "--http", "--port", "0", *arguments]
    process = subprocess.Popen(command, env=environment(url, **more), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        lines = iter(process.stderr.readline, "")
        line = next(line for line in lines if "listens on" in line)
        yield line.split()[-1]
    finally:
        process.terminate()
        told = process.stderr.read()
        process.stderr.close()
        process.wait()
    assert process.returncode == 0
    assert "Traceback" not in told


@contextmanager
def http_server_here(settings: Settings, pinned: PinnedOwner | None = None) -> Iterator[str]:
    """The same application on a free port, in a thread of this process."""
    with listen("127.0.0.1", 0) as listener:
        app = mcp_app(settings, pinned)
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on"))
        thread = threading.Thread(target=server.run, args=([listener],))
        listener.listen()  # so that clients wait until it is there
        thread.start()
        try:
            yield address_of(listener) + PATH
        finally:
            server.should_exit = True
            thread.join()


@asynccontextmanager
async def over_http(address: str, mode: str = "auto", **headers: str) -> AsyncIterator[Client]:
    """A client that reaches a server with headers of its own, such as `user="ada"` and `key="rk_…"`."""
    async with (
        httpx2.AsyncClient(headers=headers_of(**headers)) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode) as client,
    ):
        yield client


def headers_of(key: str | None = None, user: str | None = None, agent: str | None = None) -> dict[str, str]:
    """The headers that say who calls, and for whom."""
    told = {"Authorization": key and f"Bearer {key}", "Recollect-User": user, "Recollect-Agent": agent}
    return {name: value for name, value in told.items() if value is not None}


async def remember(client: Client, text: str, kind: str = "profile") -> str:
    """Remember something, and return the id of its entry."""
    result = await client.call_tool("remember", {"text": text, "kind": kind})
    assert not result.is_error, words_of(result)
    entry_id: str = result.structured_content["entry_id"]
    return entry_id


async def recalled(client: Client, query: str) -> str:
    """What a model is told about a question."""
    return words_of(await client.call_tool("recall", {"query": query}))


def words_of(result: Any) -> str:
    """What a model reads of a result."""
    (content,) = result.content
    text: str = content.text
    return text
