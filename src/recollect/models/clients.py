"""Clients of the providers' SDKs, one for each event loop: a connection works only in its own loop."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..event_loops import PerLoop
from ..extras import require_extra

if TYPE_CHECKING:
    import ssl

_CLIENTS = {"openai": "AsyncOpenAI", "anthropic": "AsyncAnthropic"}
_ERRORS = {"openai": "OpenAIError", "anthropic": "AnthropicError"}


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
        self._by_loop: PerLoop[Any] = PerLoop(self._open, close_client)

    def get(self) -> Any:
        """The client to use in the running event loop."""
        if self._given is None or can_copy(self._given):
            return self._by_loop.get()
        return self._given.with_options(**self._overrides) if self._overrides else self._given

    async def aclose(self) -> None:
        """Close the connections that were opened here; a later call opens new ones. Idempotent."""
        await self._by_loop.aclose()

    def _open(self) -> Any:
        if self._given is not None:
            return copy_client(self._sdk, self._given, **self._overrides)
        connections = self._sdk.DefaultAsyncHttpxClient(verify=ssl_context())
        return self._new_client(**self._options, **self._overrides, http_client=connections)


async def close_client(client: Any) -> None:
    """Close the connections of a client."""
    await client.close()


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
