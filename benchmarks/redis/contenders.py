"""Who is compared, behind one small face: a server, sessions on it, and closing them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import time
from typing import Any, Protocol

import msgspec
import redis.asyncio

from ..sessions.contenders import Session

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


class Contender(Protocol):
    """A server as a contender uses it."""

    def session(self, session_id: str) -> Session:
        """Make a session, as an application does for a request."""
        ...

    async def close_session(self, session: Any) -> None:
        """Close one."""
        ...

    async def close(self) -> None:
        """Let go of the server after the last."""
        ...


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


def use_as(contender: str, url: str) -> Contender:
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
async def used(contender: str, url: str) -> AsyncIterator[Contender]:
    """A server as a contender uses it, let go afterwards."""
    server = use_as(contender, url)
    try:
        yield server
    finally:
        await server.close()


@asynccontextmanager
async def live_session(server: Contender, session_id: str) -> AsyncIterator[Session]:
    """A session that has been used once, so that what connecting costs is not counted; closed afterwards."""
    session = server.session(session_id)
    try:
        await session.get_items(1)
        yield session
    finally:
        await server.close_session(session)


async def fill(url: str, session_id: str, items: list[Any]) -> None:
    """Store a history the way the SDK does, in batches that the client sends at once."""
    client: Any = redis.asyncio.from_url(url)
    raw = RawSession(session_id, client)
    for start in range(0, len(items), 1000):
        await raw.add_items(items[start : start + 1000])
    await client.aclose()


Operation = Callable[[], Awaitable[object]]
