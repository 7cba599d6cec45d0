"""Why, export and erasure in a service."""

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

from ...service_client import NotFoundOnServiceError, ServiceClient, join_path
from ...sql.columns import check_id
from ..rights.receipt import Receipt
from ..rights.why import Why
from ..store.data_rights import DataRights
from ..times import now
from .values import not_over_http, value_from, why_from


class RemoteDataRights(DataRights):
    """The rights of users over their data in a service. Receipts are signed with the key of the service."""

    def __init__(self, client: ServiceClient) -> None:
        self._client = client

    async def why(self, content_id: str) -> Why | None:
        """Why an entry is known; `None` if it does not exist."""
        found = await self._client.find(join_path("entries", check_id("content_id", content_id), "why"))
        return None if found is None else why_from(found)

    async def export_user_lines(
        self, user_id: str, *, agent_id: str | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Everything stored about a user, one record at a time."""
        owner = {"user_id": check_id("user_id", user_id), "agent_id": agent_id}
        async for line in self._client.lines("/v1/users/export", format="jsonl", **owner):
            yield line

    def export_tenant_lines(self, *, agent_id: str | None = None) -> AsyncIterator[dict[str, Any]]:
        """Not available: the service exports one user at a time."""
        raise not_over_http("export_tenant_lines")

    async def import_user(self, exported: Mapping[str, Any]) -> dict[str, int]:
        """Not available: an import writes rows with their ids, which needs the database."""
        raise not_over_http("import_user")

    async def erase_user(
        self, user_id: str, *, agent_id: str | None = None, key: bytes | str | None = None
    ) -> Receipt:
        """Erase everything stored about a user, with all agents or with one."""
        _refuse_key(key)
        owner = {"user_id": check_id("user_id", user_id), "agent_id": agent_id}
        return value_from(Receipt, await self._client.change("DELETE", "/v1/users", query=owner))

    async def erase_conversation(self, conversation_id: str, *, key: bytes | str | None = None) -> Receipt:
        """Erase a conversation and what was learned from it."""
        _refuse_key(key)
        return await self._delete(join_path("conversations", check_id("conversation_id", conversation_id)))

    async def erase_conversations_before(self, time: datetime | str, *, limit: int = 100) -> int:
        """Not available: the service does this by itself (`limits.erase_conversations_after_days`)."""
        raise not_over_http("erase_conversations_before")

    async def erase_message(
        self, conversation_id: str, message_id: str, *, key: bytes | str | None = None
    ) -> Receipt:
        """Erase a message and what was learned from it."""
        _refuse_key(key)
        check_id("conversation_id", conversation_id)
        path = join_path("conversations", conversation_id, "messages", check_id("message_id", message_id))
        return await self._delete(path)

    async def delete_memory(self, memory_id: str, *, key: bytes | str | None = None) -> Receipt:
        """Delete all entries of a memory. Conversations stay."""
        _refuse_key(key)
        return await self._delete(join_path("memories", check_id("memory_id", memory_id)))

    async def receipt_subject(self, user_id: str, *, key: bytes | str | None = None) -> str:
        """Not available: the key of the receipts does not leave the service."""
        raise not_over_http("receipt_subject")

    async def vacuum(self, *, full: bool = False) -> None:
        """Remove erased data from the files of the service's database. The key needs the scope admin."""
        await self._client.change("POST", "/v1/vacuum", query={"full": full}, is_repeatable=True)

    async def _delete(self, path: str) -> Receipt:
        """The receipt. An erasure of nothing has an empty one, as in a local store."""
        try:
            return value_from(Receipt, await self._client.change("DELETE", path))
        except NotFoundOnServiceError:
            return Receipt(now(), {}, "")


def _refuse_key(key: object) -> None:
    if key is not None:
        raise not_over_http("a key for the receipt (the service has its own)")
