"""Clients of the providers' SDKs, one for each event loop: a connection works only in its own loop."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..extras import require_extra

if TYPE_CHECKING:
    import ssl

C = TypeVar("C", bound=AbstractAsyncContextManager[Any])

_CLIENTS = {"openai": "AsyncOpenAI", "anthropic": "AsyncAnthropic"}
_ERRORS = {"openai": "OpenAIError", "anthropic": "AnthropicError"}


class ClientPerLoop(Generic[C]):
    """Opens a client the first time an event loop needs one.

    An async generator holds each client open. An event loop that ends closes its generators, and with them
    the connections.
    """

    def __init__(self, open_client: Callable[[], C]) -> None:
        self._open = open_client
        self._lock = threading.Lock()
        self._by_loop: dict[asyncio.AbstractEventLoop, tuple[C, AsyncGenerator[None, None]]] = {}

    async def get(self) -> C:
        """The client of the running event loop."""
        loop = asyncio.get_running_loop()
        opened = self._by_loop.get(loop)
        if opened is None:
            client = self._open()
            opened = (client, _hold_open(client))
            with self._lock:
                self._by_loop = {each: its for each, its in self._by_loop.items() if not each.is_closed()}
                self._by_loop[loop] = opened
            await anext(opened[1])
        return opened[0]

    async def aclose(self) -> None:
        """Close the connections of this event loop now. Other loops close theirs when they next run."""
        opened = self._by_loop.get(asyncio.get_running_loop())
        self.release()
        if opened is not None:
            await opened[1].aclose()

    def release(self) -> None:
        """Drop all clients without waiting. Each event loop closes the generators that nothing refers to."""
        with self._lock:
            self._by_loop = {}


async def _hold_open(client: AbstractAsyncContextManager[Any]) -> AsyncGenerator[None, None]:
    async with client:
        yield


class ProviderClient:
    """The client of a provider's SDK, with connections for each event loop.

    `package` is `openai` or `anthropic`: the name of the SDK and of the extra that installs it. `owner` is
    the class that `MissingExtraError` names. Without a `client`, the first call opens one with the
    `options`. A `client` that is passed in belongs to the caller and is never closed. `max_retries` replaces
    the client's own number of retries.
    """

    def __init__(
        self, package: str, owner: str, *, client: Any = None, max_retries: int | None = None, **options: Any
    ) -> None:
        self._sdk = require_extra(package, package, owner)
        self._new_client = getattr(self._sdk, _CLIENTS[package])
        self.error: type[Exception] = getattr(self._sdk, _ERRORS[package])
        """The base class of the errors that the client raises."""
        self._given = client
        self._options = options
        self._overrides = {} if max_retries is None else {"max_retries": max_retries}
        self._by_loop: ClientPerLoop[AbstractAsyncContextManager[Any]] = ClientPerLoop(self._open)

    async def get(self) -> Any:
        """The client to use in the running event loop."""
        if self._given is None or can_copy(self._given):
            return await self._by_loop.get()
        return self._given.with_options(**self._overrides) if self._overrides else self._given

    async def aclose(self) -> None:
        """Close the connections that were opened here; a later call opens new ones. Idempotent."""
        await self._by_loop.aclose()

    def _open(self) -> Any:
        if self._given is not None:
            return copy_client(self._sdk, self._given, **self._overrides)
        connections = self._sdk.DefaultAsyncHttpxClient(verify=ssl_context())
        return self._new_client(**self._options, **self._overrides, http_client=connections)


def copy_client(sdk: Any, client: Any, **overrides: Any) -> Any:
    """A copy of a client with its own connections. Closing the copy leaves the original open."""
    connections = sdk.DefaultAsyncHttpxClient(verify=ssl_context())
    return client.copy(http_client=connections, **overrides)


def can_copy(client: object) -> bool:
    """Whether the SDK made the connections of a client. Those of a custom `http_client` cannot be copied."""
    return type(getattr(client, "_client", None)).__name__ == "AsyncHttpxClientWrapper"


@lru_cache(maxsize=1)
def ssl_context() -> "ssl.SSLContext":
    """One TLS context for all clients: an SDK would create one for each client, which takes 30 ms."""
    import httpx2

    return httpx2.create_ssl_context()
