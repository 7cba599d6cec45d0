"""Memories and entries in a service."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ...errors import InvalidTypeError
from ...service_client import ServiceClient, join_path
from ...sessions.settings import check_limit
from ...sql.columns import check_id
from ..conversation import UNCHANGED, Unchanged, check_key
from ..entry import CONTENT_TYPES, ContentType, Entry, check_type
from ..memory import Memory, MemoryOutline, lists_of
from ..operations.description import shared_arguments
from ..operations.lists import EntryFilters, ListEntries, ListEntriesOf, ListMemories
from ..operations.memories import GetMemoryById, GetMemoryOutline
from ..page import DEFAULT_BUDGET, UserPage, check_budget
from ..store.entries import EntryRepository
from ..store.entry_review import EntryReview
from ..store.lookup import NO_LIMIT
from ..store.memories import MemoryRepository
from ..store.pages import PageReader
from .requests import send
from .values import entry_from, not_over_http, time_to_json, value_from


class RemoteMemoryRepository(MemoryRepository):
    """The memories in a service."""

    def __init__(self, client: ServiceClient) -> None:
        self._client = client

    async def get_memory_outline(self, request: GetMemoryOutline) -> MemoryOutline | None:
        """A memory without its entries; `None` if it does not exist."""
        memory = await send(self._client, GetMemoryById(request.memory_id))
        if memory is None:
            return None
        counts = {kind: len(getattr(memory, f"{kind}_content")) for kind in CONTENT_TYPES}
        return MemoryOutline(
            memory.memory_id,
            memory.agent_id,
            memory.user_id,
            memory.created_at,
            memory.updated_at,
            memory.version,
            counts,
        )

    async def save_memory(self, memory: Memory) -> Memory:
        """Store a memory that a person has edited, and return it as stored."""
        if not isinstance(memory, Memory):
            raise InvalidTypeError(f"memory must be a Memory, not {type(memory).__name__}")
        texts: dict[str, Any] = {
            "instruction_content": [],
            **lists_of({kind: getattr(memory, f"{kind}_content") for kind in CONTENT_TYPES}),
        }
        path = join_path("memories", memory.memory_id)
        if await self._client.find(path) is None:
            owner = {"agent_id": memory.agent_id, "user_id": memory.user_id, "memory_id": memory.memory_id}
            return Memory.from_dict(await self._client.create("/v1/memories", {**owner, **texts}))
        return Memory.from_dict(await self._client.change("PATCH", path, texts, if_match=memory.version))


class RemoteEntryRepository(EntryRepository):
    """The entries in a service."""

    def __init__(self, client: ServiceClient) -> None:
        self._client = client

    async def list_entries(self, request: ListEntries) -> list[Entry]:
        """The entries of an agent and a user with their evidence."""
        owner = ListMemories(request.agent_id, request.user_id, limit=1)
        found = await send(self._client, owner)
        if not found:
            return []
        filters = shared_arguments(request, EntryFilters)
        most = NO_LIMIT if request.limit is None else request.limit
        listed = await send(self._client, ListEntriesOf(found[0].memory_id, limit=most, **filters))
        return [entry for _, entry in listed or ()]

    async def add_entry(
        self,
        agent_id: str,
        user_id: str,
        content_type: ContentType,
        text: str,
        *,
        valid_from: str | None = None,
        valid_to: str | None = None,
        confidence: float = 1.0,
        content_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
        expires_at: datetime | str | None = None,
    ) -> Entry:
        """Add an entry that a person states; see `MemoryStore.add_entry`."""
        body = _statement(agent_id, user_id, content_type, text, valid_from, confidence, metadata, tags)
        body |= {
            "valid_to": valid_to,
            "content_id": check_key("content_id", content_id),
            "expires_at": time_to_json(expires_at),
        }
        return entry_from((await self._client.create("/v1/entries", body))["entry"])

    async def add_entry_unless_known(
        self,
        agent_id: str,
        user_id: str,
        content_type: ContentType,
        text: str,
        *,
        valid_from: str | None = None,
        confidence: float = 1.0,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
        expires_at: datetime | str | None = None,
        unless_rejected: bool = False,
    ) -> tuple[Entry, bool]:
        """Add an entry unless an entry says the same; see `MemoryStore.add_entry_unless_known`."""
        body = _statement(agent_id, user_id, content_type, text, valid_from, confidence, metadata, tags)
        body |= {
            "expires_at": time_to_json(expires_at),
            "unless": "known_or_rejected" if unless_rejected else "known",
        }
        added = await self._client.create("/v1/entries", body)
        return entry_from(added["entry"]), bool(added["is_new"])

    async def edit_entry(
        self,
        content_id: str,
        text: str,
        *,
        edited_by: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
        expires_at: datetime | str | Unchanged | None = UNCHANGED,
    ) -> Entry:
        """Correct an entry. The service stores the API key as `edited_by`."""
        if edited_by is not None:
            raise not_over_http("edited_by (the service stores the id of the API key)")
        body: dict[str, Any] = {
            "content_text": text,
            "metadata": None if metadata is None else dict(metadata),
            "tags": None if tags is None else list(tags),
        }
        if expires_at is not UNCHANGED:
            body["expires_at"] = time_to_json(expires_at)
        path = join_path("entries", check_id("content_id", content_id))
        return entry_from(await self._client.change("PATCH", path, body))


class RemotePageReader(PageReader):
    """The pages in a service."""

    def __init__(self, client: ServiceClient) -> None:
        self._client = client

    async def page(
        self,
        agent_id: str,
        user_id: str,
        *,
        budget: int = DEFAULT_BUDGET,
        as_of: datetime | str | None = None,
    ) -> UserPage:
        """What an agent knows about a user, on a page of at most `budget` tokens; see `MemoryStore.page`."""
        query = {**_owner(agent_id, user_id), "budget": check_budget(budget), "as_of": time_to_json(as_of)}
        return value_from(UserPage, await self._client.get("/v1/memories/page", **query))

    async def page_history(
        self, agent_id: str, user_id: str, *, budget: int = DEFAULT_BUDGET, limit: int = 20
    ) -> list[UserPage]:
        """The newest versions of a page, the latest first; see `MemoryStore.page_history`."""
        query = {**_owner(agent_id, user_id), "budget": check_budget(budget), "limit": limit}
        if check_limit(limit) == 0:
            return []
        found = await self._client.get("/v1/memories/page/history", **query)
        return [value_from(UserPage, page) for page in found["items"]]


class RemoteEntryReview(EntryReview):
    """Confirms and rejects entries in a service."""

    def __init__(self, client: ServiceClient) -> None:
        self._client = client

    async def purge_expired_entries(self, before: datetime | str, *, limit: int = 100) -> int:
        """Not available: the service purges expired entries by itself (`limits.purge_expired_after_days`)."""
        raise not_over_http("purge_expired_entries")


def _owner(agent_id: str, user_id: str) -> dict[str, Any]:
    return {"agent_id": check_id("agent_id", agent_id), "user_id": check_id("user_id", user_id)}


def _statement(
    agent_id: str,
    user_id: str,
    content_type: ContentType,
    text: str,
    valid_from: str | None,
    confidence: float,
    metadata: Mapping[str, Any] | None,
    tags: Sequence[str] | None,
) -> dict[str, Any]:
    """The fields that both ways to add an entry have."""
    return {
        "agent_id": check_id("agent_id", agent_id),
        "user_id": check_id("user_id", user_id),
        "content_type": check_type(content_type),
        "content_text": text,
        "valid_from": valid_from,
        "confidence": confidence,
        "metadata": None if metadata is None else dict(metadata),
        "tags": None if tags is None else list(tags),
    }
