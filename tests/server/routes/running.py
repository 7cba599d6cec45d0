"""A real server on a free port of loopback, and a client for it."""

import asyncio
import json
import socket
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2
from uvicorn import Config, Server

from recollect.server.access.keys import Scope
from recollect.server.app import create_app
from recollect.server.service import Service
from recollect.server.settings import Settings

T = TypeVar("T")


@dataclass
class Running:
    """A service that runs in a thread of its own."""

    url: str
    service: Service
    document: dict[str, Any]
    loop: asyncio.AbstractEventLoop

    def client(self, key: str | None = None) -> httpx2.Client:
        """A client, with a key if one is given."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=30)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something on the loop of the service, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def make_key(self, scope: Scope, tenant: str = "default") -> str:
        """A key of a tenant."""
        return self.do(self.service.keys.create(tenant, scope))[1]

    def learn(self) -> None:
        """Wait until all that was recorded has been learned from."""
        self.do(self.service.memory.drain(30))


@contextmanager
def running(settings: Settings) -> Iterator[Running]:
    """The service with these settings, until the block ends."""
    app = create_app(settings)
    loop = asyncio.new_event_loop()
    config = Config(app, log_config=None, lifespan="on", access_log=False, ws="none")
    server = Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_serve, args=(loop, server, listener))
        thread.start()
        try:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            _wait_for(url)
            yield Running(url, app.state.service, json.loads(json.dumps(app.openapi())), loop)
        finally:
            server.should_exit = True
            thread.join()


def _serve(loop: asyncio.AbstractEventLoop, server: Server, listener: socket.socket) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(server.serve([listener]))
    finally:
        loop.close()


def _wait_for(url: str) -> None:
    # The socket listens already: the first request waits until the service takes it.
    assert httpx2.get(f"{url}/healthz", timeout=60).status_code == 200
