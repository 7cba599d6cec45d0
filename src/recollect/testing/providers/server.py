"""The provider server: one HTTP server on loopback, in its own thread."""

import asyncio
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any, Self

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from .chat_completions import ChatCompletionsApi
from .conversations import ConversationsApi
from .core import Api, Gate, RecordedRequest
from .embeddings import EmbeddingsApi
from .faults import Fault, FaultScript
from .messages import MessagesApi
from .models import ModelsApi
from .responses import ResponsesApi


class ProviderServer:
    """A server on 127.0.0.1 that implements the APIs of model providers, by default on a free port."""

    def __init__(self, api_key: str = "test-key", port: int = 0) -> None:
        self.api_key = api_key
        self._port = port
        self.conversations = ConversationsApi()
        self.responses = ResponsesApi(self.conversations)
        self.chat = ChatCompletionsApi()
        self.embeddings = EmbeddingsApi()
        self.messages = MessagesApi()
        self._apis: Sequence[Api] = (
            self.conversations,
            self.responses,
            self.chat,
            self.embeddings,
            self.messages,
            ModelsApi(),
        )
        self._requests: list[RecordedRequest] = []
        self._script = FaultScript()
        self._connections: dict[Any, asyncio.Transport] = {}
        self._socket: socket.socket | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    # --- for tests ---

    @property
    def base_url(self) -> str:
        """The base URL for OpenAI clients, such as `http://127.0.0.1:40123/v1`."""
        return f"{self.root_url}/v1"

    @property
    def root_url(self) -> str:
        """The base URL for Anthropic clients, such as `http://127.0.0.1:40123`."""
        if self._socket is None:
            raise RuntimeError("the provider server is not running")
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    @property
    def open_connections(self) -> int:
        """The number of connected clients."""
        return len(self._connections)

    def requests(self, pattern: str = "* **") -> list[RecordedRequest]:
        """Return the recorded requests, oldest first, filtered by such as `POST /v1/things/*`."""
        return [request for request in list(self._requests) if request.matches(pattern)]

    def fail_next(self, pattern: str, *faults: Fault, times: int = 1, after: int = 0) -> None:
        """Make the next matching requests fail, once or several times, after a number of successes."""
        self._script.add(pattern, faults, times, after)

    def reset(self) -> None:
        """Clear requests, faults and all stored data."""
        self._requests.clear()
        self._script.clear()
        for api in self._apis:
            api.reset()

    # --- running ---

    def start(self) -> Self:
        """Start listening. The server runs until `stop`."""
        # With an explicit protocol, asyncio sends small responses at once instead of 40 ms later.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", self._port))
        gate = Gate(self._apis, self.api_key, self._record, self._drop)
        self._server = uvicorn.Server(_config(gate, self._connections))
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="provider-server", daemon=True
        )
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.002)
        return self

    def stop(self) -> None:
        """Close all connections and the port. Can be called twice."""
        if self._server is not None and self._thread is not None and self._socket is not None:
            self._server.should_exit = True
            self._thread.join()
            self._socket.close()
        self._server = self._thread = self._socket = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_exc_info: object) -> None:
        self.stop()

    def _record(self, request: RecordedRequest) -> Sequence[Fault]:
        self._requests.append(request)
        return self._script.take(request)

    def _drop(self, client: Any) -> None:
        connection = self._connections.get(tuple(client))
        if connection is not None:
            connection.close()


def _config(gate: Gate, connections: dict[Any, asyncio.Transport]) -> uvicorn.Config:
    class Connection(H11Protocol):
        """A connection that can be found by the client's address and dropped, which ASGI does not support."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            connections[self.client] = transport

        def connection_lost(self, exc: Exception | None) -> None:
            connections.pop(self.client, None)
            super().connection_lost(exc)

    return uvicorn.Config(
        gate,
        loop="asyncio",
        http=Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        timeout_graceful_shutdown=0,
    )
