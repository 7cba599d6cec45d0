"""Clients of the `redis` package, for tests: closed with the event loop they are made in."""

from collections.abc import AsyncGenerator
from typing import Any

import redis.asyncio

_lifetimes: list[AsyncGenerator[None, None]] = []


async def make_client(url: str, **options: Any) -> Any:
    """A client that its owner, the test, closes when the event loop ends."""
    if "+cluster" in url:
        client: Any = redis.asyncio.RedisCluster.from_url(url.replace("+cluster", ""), **options)
    else:
        client = redis.asyncio.from_url(url, **options)
    lifetime = _until_the_loop_ends(client)
    _lifetimes.append(lifetime)
    await anext(lifetime)
    return client


async def _until_the_loop_ends(client: Any) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await client.aclose()
