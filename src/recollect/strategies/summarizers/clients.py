"""Clients of model providers, one for each event loop."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

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
