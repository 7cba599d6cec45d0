"""Redis sessions keep the contract: by URL, on a client, on a cluster, and within a wrapper."""

import threading
from typing import Any

import pytest

from recollect import AppendsOnce, Described, Leasable, Positioned, RetryingSession, Rewritable, Session
from recollect.sessions.protocol import Noted, PopsChecked
from recollect.sessions.redis import RedisSession
from recollect.sessions.redis.layout import layout_of
from recollect.testing import SessionContract

from .clients import make_client

ALL_ABILITIES = (Rewritable, PopsChecked, Positioned, AppendsOnce, Described, Noted, Leasable)


class TestFromURL(SessionContract):
    abilities = ALL_ABILITIES
    options: dict[str, Any] = {}  # noqa: RUF012

    @pytest.fixture(autouse=True)
    def server(self, redis_url: str, prefix: str) -> None:
        self.url = redis_url
        self.prefix = prefix

    async def open_session(self, session_id: str) -> Session:
        return RedisSession.from_url(session_id, url=self.url, key_prefix=self.prefix, **self.options)

    async def store_corrupt(self, session: Any) -> bool:
        client = await make_client(self.url)
        keys = layout_of(self.prefix, "+cluster" in self.url).keys_of(session.session_id)
        await client.rpush(keys.messages, b"\xff no JSON")
        return True


class TestWithTTL(TestFromURL):
    options = {"ttl": 600}  # noqa: RUF012


@pytest.mark.proof
class TestOnAClient(TestFromURL):
    """One client for all sessions of a test, also for those in other event loops."""

    client: Any = None
    options = {"decode_responses": True, "max_connections": 3}  # noqa: RUF012

    @pytest.fixture(autouse=True)
    def one_at_a_time(self) -> None:
        self.opening = threading.Lock()

    async def open_session(self, session_id: str) -> Session:
        with self.opening:  # nothing below waits: the loop that makes the client is the first to use it
            if self.client is None:
                self.client = await make_client(self.url, **self.options)
            return RedisSession(session_id, redis_client=self.client, key_prefix=self.prefix)


class TestOnACluster(TestFromURL):
    @pytest.fixture(autouse=True)
    def server(self, cluster_url: str, prefix: str) -> None:
        self.url = cluster_url
        self.prefix = prefix


@pytest.mark.proof
class TestOnAClusterClient(TestOnAClient):
    @pytest.fixture(autouse=True)
    def server(self, cluster_url: str, prefix: str) -> None:
        self.url = cluster_url
        self.prefix = prefix


class TestRetrying(TestFromURL):
    abilities = ()

    async def open_session(self, session_id: str) -> Session:
        session = RedisSession.from_url(session_id, url=self.url, key_prefix=self.prefix)
        return RetryingSession(session, delay=0.01)
