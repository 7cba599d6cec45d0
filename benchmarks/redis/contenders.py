"""Who is compared on Redis: ours, the SDK's sessions, and the client itself."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from time import time
from typing import Any

import msgspec
import redis.asyncio

from recollect.testing.servers.redis import RedisServer

from ..shared.items import make_items
from ..shared.stores import OpenStore, Session, Store, closed_afterwards

OURS = "recollect"
SDK = "SDK RedisSession"
SDK_SHARED = "SDK, shared client"
RAW = "raw redis"

CONTENDERS = (OURS, SDK, SDK_SHARED, RAW)
BASELINES = (RAW, SDK)
PREFIX = "agents:session"

encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class RawSession:
    """What the client itself takes: each method one round trip, with a fast codec, on the SDK's keys.

    A batch and what belongs to it go as one transaction. Nothing is checked, nothing done about faults.
    """

    def __init__(self, session_id: str, client: Any) -> None:
        self.session_id = session_id
        self._client = client
        self._key = f"{PREFIX}:{session_id}"
        self._messages = f"{PREFIX}:{session_id}:messages"

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """All items, or the newest, oldest first."""
        return [_decode(entry) for entry in await self._client.lrange(self._messages, -(limit or 0), -1)]

    async def add_items(self, items: list[Any]) -> None:
        """Append in a transaction."""
        now = int(time())
        pipeline = self._client.pipeline(transaction=True)
        pipeline.hset(self._key, "session_id", self.session_id)
        pipeline.hsetnx(self._key, "created_at", now)
        pipeline.rpush(self._messages, *map(encode, items))
        pipeline.hset(self._key, "updated_at", now)
        await pipeline.execute()

    async def pop_item(self) -> Any:
        """Remove the newest and return it."""
        entry = await self._client.rpop(self._messages)
        return None if entry is None else _decode(entry)

    async def clear_session(self) -> None:
        """Remove everything."""
        await self._client.delete(self._key, self._messages)


class FromURL:
    """A class whose sessions connect by themselves."""

    def __init__(self, make: Callable[..., Any], url: str) -> None:
        self._make = make
        self._url = url

    def session(self, session_id: str) -> Session:
        """A session at the URL."""
        session: Session = self._make(session_id, url=self._url)
        return session

    async def close_session(self, session: Any) -> None:
        """Close it, and with it what it opened."""
        await session.close()

    async def close(self) -> None:
        """Nothing: sessions have closed what they opened."""


class OnClient:
    """Sessions that share a client which the application holds."""

    def __init__(self, make: Callable[[str, Any], Any], url: str) -> None:
        self._make = make
        self._client: Any = redis.asyncio.from_url(url)

    def session(self, session_id: str) -> Session:
        """A session on the client."""
        session: Session = self._make(session_id, self._client)
        return session

    async def close_session(self, session: Any) -> None:
        """Nothing: the client stays."""

    async def close(self) -> None:
        """Close the client."""
        await self._client.aclose()


def use_as(contender: str, url: str) -> Store:
    """A server as one of the contenders uses it."""
    from agents.extensions.memory import RedisSession as SDKSession

    from recollect.sessions.redis import RedisSession

    def on_client(session_id: str, client: Any) -> Any:
        return SDKSession(session_id, redis_client=client)

    match contender:
        case "recollect":
            return FromURL(RedisSession.from_url, url)
        case "SDK RedisSession":
            return FromURL(SDKSession.from_url, url)
        case "SDK, shared client":
            return OnClient(on_client, url)
        case "raw redis":
            return OnClient(RawSession, url)
        case _:
            raise ValueError(f"no contender {contender!r}")


@asynccontextmanager
async def on_servers() -> AsyncIterator[OpenStore]:
    """A server of its own for each contender."""
    yield _open_store


@asynccontextmanager
async def _open_store(contender: str, histories: Mapping[str, int]) -> AsyncIterator[Store]:
    with RedisServer() as server:
        for session_id, size in histories.items():
            await fill(server.url, session_id, make_items(size))
        async with closed_afterwards(use_as(contender, server.url)) as store:
            yield store


async def fill(url: str, session_id: str, items: list[Any]) -> None:
    """Store a history the way the SDK does, in batches that the client sends at once."""
    client: Any = redis.asyncio.from_url(url)
    raw = RawSession(session_id, client)
    for start in range(0, len(items), 1000):
        await raw.add_items(items[start : start + 1000])
    await client.aclose()
