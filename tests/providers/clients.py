"""The real client, for a provider server."""

from functools import cache
from ssl import SSLContext
from typing import Any

import httpx2
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from recollect.testing.providers import ProviderServer


def client_of(server: ProviderServer, **options: Any) -> Any:
    """A client that retries nothing, loosely typed, because the items of tests are plain dicts."""
    given = {"base_url": server.base_url, "api_key": server.api_key, "max_retries": 0, **options}
    return AsyncOpenAI(**given, http_client=DefaultAsyncHttpxClient(verify=ssl_context()))


@cache
def ssl_context() -> SSLContext:
    """Made once, because it takes as long as a test."""
    return httpx2.create_ssl_context()
