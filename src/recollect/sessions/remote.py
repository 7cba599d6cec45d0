"""A session in a Recollect service."""

from typing import Any

from ..ids import new_hex
from ..service_client import ServiceClient, ServiceOptions
from ..text_checks import check_text
from .protocol import Items, SessionABC, SessionMetadata, check_metadata
from .sdk_hooks import encode_batch

_ITEMS = "/v1/sessions/items"


class RemoteSession(SessionABC):
    """The session `session_id` in the service at `url`, with its API `key`.

    `metadata` name the user and the agent of a new session, so that an export or erasure of the user finds
    it. A batch is stored once, also if its answer is lost and it is sent again. `pop_item` and
    `clear_session` are not repeated: if the connection is lost, the outcome is unknown, and they raise a
    `ConnectionLostError`.
    """

    def __init__(
        self,
        session_id: str,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 30.0,
        retries: int = 3,
        metadata: SessionMetadata | None = None,
        session_settings: Any = None,
    ) -> None:
        super().__init__(session_id, session_settings)
        self._owner = check_metadata(metadata or SessionMetadata())
        self._client = ServiceClient(ServiceOptions(url, key, timeout, retries), "RemoteSession")

    async def get_items(self, limit: int | None = None) -> Items:
        """Return all items, oldest first, or with a limit only the newest ones."""
        limit = self._effective_limit(limit)
        lines = self._client.lines(_ITEMS, session_id=self.session_id, limit=limit, format="jsonl")
        return [line async for line in lines]

    async def add_items(self, items: Items) -> None:
        """Append a batch: all of its items or none."""
        await self.add_batch(items, new_hex())

    async def add_batch(self, items: Items, batch_id: str) -> bool:
        """Append a batch unless one with this id was appended before. Return whether it was appended now."""
        self._check_open()
        encoded = await encode_batch(items)
        if not encoded:
            return False
        body = {
            "session_id": self.session_id,
            "batch_id": check_text("batch_id", batch_id),
            "user_id": self._owner.user_id,
            "agent_id": self._owner.agent_id,
        }
        added = await self._client.send_items(_ITEMS, body, encoded)
        return bool(added["is_new"])

    async def pop_item(self) -> Any:
        """Remove and return the newest item, or return `None` if there is none."""
        self._check_open()
        popped = await self._client.change("POST", "/v1/sessions/pop", {"session_id": self.session_id})
        return popped["item"]

    async def clear_session(self) -> None:
        """Remove all items and the session itself."""
        self._check_open()
        await self._client.change("DELETE", "/v1/sessions", query={"session_id": self.session_id})

    async def aclose(self) -> None:
        """Close the connections of this session. Idempotent."""
        await super().aclose()
        await self._client.aclose()
