"""Runs, coverage and waiting in a service."""

import asyncio
from time import monotonic

from ...service_client import NotFoundOnServiceError, ServiceClient, join_path
from ...sql.columns import check_id
from ..run import Coverage, Days, Run, Spent, SpentBy
from ..store.lookup import check_seconds
from ..store.runs import LearningProgress, RunRepository
from .pages import RemoteList
from .values import not_over_http, value_from

_LONGEST_WAIT = 20.0  # seconds of one request; the service allows 30
_POLL = 0.2  # seconds


class RemoteRunRepository(RunRepository):
    """The runs in a service."""

    def __init__(self, client: ServiceClient) -> None:
        self._client = client

    async def spent_by_day(self, days: Days, by: SpentBy = "model", limit: int = 10_000) -> list[Spent]:
        """Not available: `GET /v1/usage` has the sums of learning and chats together."""
        raise not_over_http("spent_by_day")

    async def list_runs_of(self, conversation_id: str) -> list[Run]:
        """The runs of a conversation, in their order."""
        path = join_path("conversations", check_id("conversation_id", conversation_id), "runs")
        try:
            rows = await RemoteList(self._client, path, "runs").read(None)
        except NotFoundOnServiceError:
            return []
        return sorted((value_from(Run, row) for row in rows), key=lambda run: run.first_index)


class RemoteProgress(LearningProgress):
    """Counts, and waits for, the learning of a service."""

    def __init__(self, client: ServiceClient) -> None:
        self._client = client

    async def coverage(self, agent_id: str | None = None, user_id: str | None = None) -> Coverage:
        """The number of conversations that are remembered, pending, failed, and remembered in part."""
        found = await self._client.get("/v1/coverage", agent_id=agent_id, user_id=user_id)
        return value_from(Coverage, found)

    async def drain(self, timeout: float | None = None) -> Coverage:
        """Wait until no conversation is pending. A `TimeoutError` after `timeout` seconds.

        A conversation that must be quiet first is waited for, too: the service does not count it apart.
        """
        async with asyncio.timeout(timeout):
            while (coverage := await self.coverage()).pending:  # noqa: ASYNC110 - another process works
                await asyncio.sleep(_POLL)
        return coverage

    async def wait_until_learned(self, agent_id: str | None, user_id: str, *, timeout: float = 30.0) -> bool:
        """Wait until all recorded messages of an agent and a user are learned from and have vectors."""
        ends = monotonic() + check_seconds("timeout", timeout)
        owner = {"agent_id": agent_id, "user_id": check_id("user_id", user_id)}
        while True:
            wait = min(max(ends - monotonic(), 0), _LONGEST_WAIT)
            found = await self._client.get("/v1/coverage", wait=wait, **owner)
            if found["learned"] or monotonic() >= ends:
                return bool(found["learned"])

    async def embed_pending(self) -> int:
        """Do nothing and return 0: the service makes the vectors by itself."""
        return 0
