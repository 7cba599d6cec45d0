"""Search and recall in a service."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ...errors import InvalidTypeError
from ...service_client import ServiceClient
from ...sessions.settings import check_limit
from ...sql.columns import check_id
from ..conversation import Role
from ..entry import ContentType
from ..hits import MemorySearch, Recalled, TurnSearch
from ..search.relevance import DEFAULT_CUT
from ..store.across import UsersSearcher, check_users
from ..store.search import MemorySearcher
from .values import memory_search_from, not_over_http, recalled_from, time_to_json, turn_search_from


class RemoteSearcher(MemorySearcher):
    """Searches the memories in a service."""

    def __init__(self, client: ServiceClient) -> None:
        self._client = client

    async def search_memories(
        self,
        query: str,
        agent_id: str | None,
        user_id: str,
        *,
        limit: int = 10,
        content_type: ContentType | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        as_of: datetime | str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        role: Role | None = None,
        name: str | None = None,
        min_score: float | None = None,
        min_relevance: float | None = None,
    ) -> MemorySearch:
        """The entries that answer a question best; see `MemoryStore.search_memories`."""
        if not _check(query, limit):
            return MemorySearch(())
        body = _request(query, agent_id, user_id, since, until, tags, metadata, role, name)
        body |= {
            "limit": limit,
            "content_type": content_type,
            "as_of": time_to_json(as_of),
            "min_score": min_score,
            "min_relevance": min_relevance,
        }
        return memory_search_from(await self._client.read("/v1/memories/search", body))

    async def search_conversations(
        self,
        query: str,
        agent_id: str | None,
        user_id: str,
        *,
        limit: int = 10,
        session_id: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        role: Role | None = None,
        name: str | None = None,
        min_score: float | None = None,
        min_relevance: float | None = None,
    ) -> TurnSearch:
        """The messages that answer a question best; see `MemoryStore.search_conversations`."""
        if not _check(query, limit):
            return TurnSearch(())
        body = _request(query, agent_id, user_id, since, until, tags, metadata, role, name)
        body |= {
            "limit": limit,
            "session_id": session_id,
            "min_score": min_score,
            "min_relevance": min_relevance,
        }
        return turn_search_from(await self._client.read("/v1/conversations/search", body))

    async def recall(
        self,
        query: str,
        agent_id: str | None,
        user_id: str,
        *,
        budget: int = 1000,
        tokenizer: Callable[[str], int] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        role: Role | None = None,
        name: str | None = None,
        min_relevance: float = DEFAULT_CUT,
    ) -> Recalled:
        """What is remembered about a question, as a text for a prompt; see `MemoryStore.recall`."""
        if tokenizer is not None:
            raise not_over_http("a tokenizer (the service estimates the tokens)")
        _check(query, budget)
        body = _request(query, agent_id, user_id, since, until, tags, metadata, role, name)
        body |= {"budget": budget, "min_relevance": min_relevance}
        return recalled_from(await self._client.read("/v1/memories/recall", body))


class RemoteUsersSearcher(UsersSearcher):
    """Searches the memories of many users in a service, with a key that has the scope admin."""

    def __init__(self, client: ServiceClient) -> None:
        self._client = client

    async def search_memories_of_users(
        self,
        query: str,
        user_ids: Sequence[str] | None = None,
        *,
        agent_id: str | None = None,
        limit: int = 10,
        content_type: ContentType | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        as_of: datetime | str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        role: Role | None = None,
        name: str | None = None,
        min_score: float | None = None,
        min_relevance: float | None = None,
    ) -> MemorySearch:
        """The entries of many users that answer a question best."""
        if not _check(query, limit):
            return MemorySearch(())
        body = {
            **_of_users(query, user_ids, agent_id, limit),
            **_filters(since, until, tags, metadata, role, name),
            "content_type": content_type,
            "as_of": time_to_json(as_of),
            "min_score": min_score,
            "min_relevance": min_relevance,
        }
        return memory_search_from(await self._client.read("/v1/search/memories", body))

    async def search_conversations_of_users(
        self,
        query: str,
        user_ids: Sequence[str] | None = None,
        *,
        agent_id: str | None = None,
        limit: int = 10,
        session_id: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        role: Role | None = None,
        name: str | None = None,
        min_score: float | None = None,
        min_relevance: float | None = None,
    ) -> TurnSearch:
        """The messages of many users that answer a question best."""
        if not _check(query, limit):
            return TurnSearch(())
        body = {
            **_of_users(query, user_ids, agent_id, limit),
            **_filters(since, until, tags, metadata, role, name),
            "session_id": session_id,
            "min_score": min_score,
            "min_relevance": min_relevance,
        }
        return turn_search_from(await self._client.read("/v1/search/conversations", body))


def _of_users(query: str, user_ids: Sequence[str] | None, agent_id: str | None, limit: int) -> dict[str, Any]:
    users = None if user_ids is None else check_users(user_ids)
    agent = None if agent_id is None else check_id("agent_id", agent_id)
    return {"query": query, "user_ids": users, "agent_id": agent, "limit": limit}


def _check(query: object, limit: int) -> bool:
    """Whether anything can be found: not with a limit of 0, which the service refuses."""
    if not isinstance(query, str):
        raise InvalidTypeError(f"query must be a string, not {type(query).__name__}")
    if check_limit(limit) is None:
        raise InvalidTypeError("limit must be a whole number")
    return limit > 0


def _request(
    query: str,
    agent_id: str | None,
    user_id: str,
    since: datetime | str | None,
    until: datetime | str | None,
    tags: Sequence[str] | None,
    metadata: Mapping[str, Any] | None,
    role: Role | None,
    name: str | None,
) -> dict[str, Any]:
    """The fields that all searches of one user have."""
    filters = _filters(since, until, tags, metadata, role, name)
    agent = None if agent_id is None else check_id("agent_id", agent_id)
    return {"query": query, "agent_id": agent, "user_id": check_id("user_id", user_id), **filters}


def _filters(
    since: datetime | str | None,
    until: datetime | str | None,
    tags: Sequence[str] | None,
    metadata: Mapping[str, Any] | None,
    role: Role | None,
    name: str | None,
) -> dict[str, Any]:
    return {
        "since": time_to_json(since),
        "until": time_to_json(until),
        "tags": None if tags is None else list(tags),
        "metadata": None if metadata is None else dict(metadata),
        "role": role,
        "name": name,
        "explain": True,
    }
