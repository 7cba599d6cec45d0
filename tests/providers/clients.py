"""The real clients, for a provider server."""

from functools import cache
from ssl import SSLContext
from typing import Any

import anthropic
import httpx2
import openai

from recollect.testing.providers import ProviderServer


def client_of(server: ProviderServer, **options: Any) -> Any:
    """A client that retries nothing, loosely typed, because the items of tests are plain dicts."""
    connections = openai.DefaultAsyncHttpxClient(verify=ssl_context())
    return openai.AsyncOpenAI(**_options(server, server.base_url, options), http_client=connections)


def sync_client_of(server: ProviderServer, **options: Any) -> Any:
    """The same for code that does not await."""
    connections = openai.DefaultHttpxClient(verify=ssl_context())
    return openai.OpenAI(**_options(server, server.base_url, options), http_client=connections)


def anthropic_of(server: ProviderServer, **options: Any) -> Any:
    """Anthropic's client, that retries nothing."""
    connections = anthropic.DefaultAsyncHttpxClient(verify=ssl_context())
    return anthropic.AsyncAnthropic(**_options(server, server.root_url, options), http_client=connections)


def sync_anthropic_of(server: ProviderServer, **options: Any) -> Any:
    """The same for code that does not await."""
    connections = anthropic.DefaultHttpxClient(verify=ssl_context())
    return anthropic.Anthropic(**_options(server, server.root_url, options), http_client=connections)


def _options(server: ProviderServer, base_url: str, options: dict[str, Any]) -> dict[str, Any]:
    return {"base_url": base_url, "api_key": server.api_key, "max_retries": 0, **options}


@cache
def ssl_context() -> SSLContext:
    """Made once, because it takes as long as a test."""
    return httpx2.create_ssl_context()
