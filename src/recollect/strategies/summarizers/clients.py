"""Clients of model providers, one for each event loop, and what all who ask a model have in common."""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from ...extras import require_extra

if TYPE_CHECKING:
    import ssl

C = TypeVar("C", bound=AbstractAsyncContextManager[Any])


class ClientPerLoop(Generic[C]):
    """Makes a client when an event loop first needs one: a connection works only in the loop that opened it.

    Each is kept by an async generator: a loop that ends closes its generators, and so the connections.
    """

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._changing = threading.Lock()
        self._by_loop: dict[asyncio.AbstractEventLoop, tuple[C, AsyncGenerator[None, None]]] = {}

    async def get(self) -> C:
        """The client for the loop that runs."""
        loop = asyncio.get_running_loop()
        kept = self._by_loop.get(loop)
        if kept is None:
            client = self._make()
            kept = (client, _keep_open(client))
            with self._changing:
                self._by_loop = {each: its for each, its in self._by_loop.items() if not each.is_closed()}
                self._by_loop[loop] = kept
            await anext(kept[1])
        return kept[0]

    async def aclose(self) -> None:
        """Close the connections of this loop now; those of others are closed when their loops come to it."""
        with self._changing:
            by_loop, self._by_loop = self._by_loop, {}
        kept = by_loop.pop(asyncio.get_running_loop(), None)
        if kept is not None:
            await kept[1].aclose()


async def _keep_open(client: AbstractAsyncContextManager[Any]) -> AsyncGenerator[None, None]:
    async with client:
        yield


@lru_cache(maxsize=1)
def ssl_context() -> "ssl.SSLContext":
    """What a client would make anew for itself, which takes 30 ms."""
    import httpx2

    return httpx2.create_ssl_context()


def makes_connections_itself(client: object) -> bool:
    """Not so a client that was given an `http_client`: nobody but who made that knows how to make another."""
    return type(getattr(client, "_client", None)).__name__ == "AsyncHttpxClientWrapper"


class AsksProvider(ABC):
    """Whoever asks a model through the client of its provider, with connections for each event loop.

    Without a client one is made. A client that is given stays the caller's, and is never closed.
    """

    package: ClassVar[str]
    """The provider's package, and the name of the extra that brings it."""
    least_input_tokens: ClassVar[int]
    """So many must be allowed for a request, with its instructions."""
    client_options: ClassVar[Mapping[str, Any]] = {}
    """What holds for every client, also for one that is given."""

    def __init__(
        self,
        model: str,
        *,
        client: Any,
        base_url: str | None,
        api_key: str | None,
        timeout: float,
        max_input_tokens: int,
    ) -> None:
        self._sdk = require_extra(self.package, self.package, type(self).__name__)
        if client is not None and (base_url is not None or api_key is not None):
            raise ValueError("give a client, or a base_url and an api_key, not both")
        if not timeout > 0:
            raise ValueError(f"timeout must be positive, and it is {timeout}")
        least = self.least_input_tokens
        if max_input_tokens < least:
            raise ValueError(f"max_input_tokens must be at least {least}, not {max_input_tokens}")
        self.model = model
        self._given = client
        self._options = {"base_url": base_url, "api_key": api_key, "timeout": timeout}
        self._timeout = timeout
        self._max_input_tokens = max_input_tokens
        self._clients: ClientPerLoop[AbstractAsyncContextManager[Any]] = ClientPerLoop(self._own_client)

    async def aclose(self) -> None:
        """Close the connections that were opened here; a later call opens others. Twice is harmless."""
        await self._clients.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc_info: object) -> None:
        await self.aclose()

    @abstractmethod
    def _new_client(self, **options: Any) -> Any:
        """A client of the provider."""

    @property
    @abstractmethod
    def _client_error(self) -> type[Exception]:
        """The base of all that the client raises on its own behalf."""

    async def _client(self) -> Any:
        if self._given is None or makes_connections_itself(self._given):
            return await self._clients.get()
        return self._given.with_options(**self.client_options) if self.client_options else self._given

    def _own_client(self) -> Any:
        """A client with connections of its own; where one was given, a copy that never touches its own."""
        connections = self._sdk.DefaultAsyncHttpxClient(verify=ssl_context())
        if self._given is not None:
            return self._given.copy(http_client=connections, **self.client_options)
        return self._new_client(**self._options, http_client=connections, **self.client_options)
