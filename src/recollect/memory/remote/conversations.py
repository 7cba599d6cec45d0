"""Conversations in a service: recording, reading, their settings."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ...errors import ConflictError, InvalidTypeError, InvalidValueError
from ...service_client import NotFoundOnServiceError, ServiceClient, join_path
from ...sessions.settings import check_limit
from ...sql.columns import check_id
from ..conversation import (
    UNCHANGED,
    Conversation,
    ConversationSettings,
    Message,
    Unchanged,
    injection_to_column,
    read_messages,
    strategy_to_column,
)
from ..operations.conversations import GetConversation
from ..store.conversation_reader import ConversationReader
from ..store.conversation_writer import ConversationWriter
from ..store.lookup import check_seconds
from ..times import check_said, format_time, now
from .pages import RemoteList
from .requests import send
from .values import conversation_from, message_from, settings_from

_CONVERSATIONS = "/v1/conversations"
_KIND = "conversations"


class RemoteConversationWriter(ConversationWriter):
    """Records conversations in a service."""

    def __init__(self, client: ServiceClient) -> None:
        self._client = client

    async def record_conversation(
        self,
        agent_id: str = "",
        user_id: str = "",
        messages: Sequence[Message | Mapping[str, Any]] = (),
        *,
        session_id: str | None = None,
        conversation_id: str | None = None,
        memory_id: str | None = None,
        created_at: datetime | str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
    ) -> Conversation:
        """Store a conversation; see `MemoryStore.record_conversation`."""
        made = Conversation(
            agent_id, user_id, messages, session_id, conversation_id, created_at, memory_id,
            metadata=metadata, tags=tags,
        )  # fmt: skip
        if not made.messages:
            raise InvalidValueError("messages must not be empty")
        check_said("created_at", made.created_at)
        body = {
            "agent_id": made.agent_id,
            "user_id": made.user_id,
            "session_id": made.session_id,
            "conversation_id": made.conversation_id,
            "memory_id": made.memory_id,
            "created_at": format_time(made.created_at),
            "metadata": made.metadata,
            "tags": list(made.tags),
            "messages": [_message_to_json(message) for message in made.messages],
        }
        await self._client.create(_CONVERSATIONS, body)
        return await self._read_back(made.conversation_id)

    async def open_conversation(
        self,
        agent_id: str,
        user_id: str,
        *,
        session_id: str | None = None,
        conversation_id: str | None = None,
        memory_strategy: Mapping[str, Any] | None = None,
        memory_injection: bool | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
    ) -> Conversation:
        """Open a conversation that has no messages yet; see `MemoryStore.open_conversation`."""
        made = Conversation(agent_id, user_id, (), session_id, conversation_id, metadata=metadata, tags=tags)
        strategy_to_column(memory_strategy)
        injection_to_column(memory_injection)
        body = {
            "agent_id": made.agent_id,
            "user_id": made.user_id,
            "session_id": made.session_id,
            "memory_strategy": None if memory_strategy is None else dict(memory_strategy),
            "memory_injection": memory_injection,
            "metadata": made.metadata,
            "tags": list(made.tags),
        }
        path = join_path(_KIND, made.conversation_id)
        return conversation_from(await self._client.change("PUT", path, body, is_repeatable=True))

    async def append_messages(
        self,
        conversation_id: str,
        messages: Sequence[Message | Mapping[str, Any]],
        *,
        learn_after: float | None = None,
        even_if_closed: bool = False,
    ) -> list[Message]:
        """Append messages to a conversation; see `MemoryStore.append_messages`."""
        check_id("conversation_id", conversation_id)
        read = read_messages(messages, now())
        if not read:
            raise InvalidValueError("messages must not be empty")
        waits = learn_after is not None and learn_after != math.inf
        body = {
            "messages": [_message_to_json(message) for message in read],
            "learn": learn_after != math.inf,
            "learn_after": check_seconds("learn_after", learn_after) if waits else None,
            "even_if_closed": even_if_closed,
        }
        added = await self._client.create(join_path(_KIND, conversation_id, "messages"), body)
        return [message_from(each) for each in added["messages"]]

    async def close_conversation(self, conversation_id: str) -> Conversation | None:
        """Close a conversation to new messages; `None` if it does not exist."""
        path = join_path(_KIND, check_id("conversation_id", conversation_id), "close")
        try:
            await self._client.change("POST", path, is_repeatable=True)
        except NotFoundOnServiceError:
            return None
        return await send(self._client, GetConversation(conversation_id))

    async def get_conversation_settings(self, conversation_id: str) -> ConversationSettings | None:
        """The settings of a conversation; `None` if it does not exist."""
        path = join_path(_KIND, check_id("conversation_id", conversation_id), "memory")
        found = await self._client.find(path)
        return None if found is None else settings_from(conversation_id, found)

    async def change_conversation_settings(
        self,
        conversation_id: str,
        *,
        memory_strategy: Mapping[str, Any] | Unchanged | None = UNCHANGED,
        memory_injection: bool | Unchanged | None = UNCHANGED,
        provider_conversation_id: str | Unchanged | None = UNCHANGED,
        version: int | None = None,
    ) -> ConversationSettings | None:
        """Change the given settings and return all of them; `None` if the conversation does not exist."""
        given = {
            "memory_strategy": memory_strategy,
            "memory_injection": memory_injection,
            "provider_conversation_id": provider_conversation_id,
        }
        changes = {name: value for name, value in given.items() if value is not UNCHANGED}
        path = join_path(_KIND, check_id("conversation_id", conversation_id), "memory")
        try:
            changed = await self._client.change("PATCH", path, changes, if_match=version)
        except NotFoundOnServiceError:
            return None
        return settings_from(conversation_id, changed)

    async def _read_back(self, conversation_id: str) -> Conversation:
        stored = await send(self._client, GetConversation(conversation_id))
        if stored is None:
            raise ConflictError("the conversation was erased while it was being recorded")
        return stored


class RemoteConversationReader(ConversationReader):
    """Reads the conversations in a service."""

    def __init__(self, client: ServiceClient) -> None:
        self._client = client

    async def list_messages(
        self, conversation_id: str, *, after: int | None = None, around: str | None = None, limit: int = 100
    ) -> list[Message] | None:
        """A page of a conversation's messages after a `message_index`; `None` if there is no conversation."""
        if after is not None and (isinstance(after, bool) or not isinstance(after, int)):
            raise InvalidTypeError(f"after must be a whole number, not {type(after).__name__}")
        path = join_path(_KIND, check_id("conversation_id", conversation_id), "messages")
        first = None if after is None else max(after, -1)
        if await self._client.find(f"{path.removesuffix('/messages')}/outline") is None:
            return None
        if around is not None:
            page = await self._client.find(path, around=check_id("around", around), limit=check_limit(limit))
            rows = [] if page is None else page["items"]
        else:
            rows = await RemoteList(self._client, path, "messages").read(limit, first)
        return [message_from(row) for row in rows]


def _message_to_json(message: Message) -> dict[str, Any]:
    fields = message.to_dict()
    del fields["message_index"]
    return fields if message.attachments else {**fields, "attachments": None}
