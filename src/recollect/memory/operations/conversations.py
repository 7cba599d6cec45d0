"""One conversation: reading it with its messages, or without."""

from dataclasses import dataclass
from typing import Any

from ..conversation import Conversation
from .description import Key, Operation, Route


@dataclass(frozen=True)
class GetConversation(Operation[Conversation | None]):
    """A conversation with all its messages. Read a long one page by page, by its messages."""

    route = Route(
        "GET",
        "/v1/conversations/{conversation_id}",
        "conversations.get",
        "Read a conversation",
        codes=("not_found",),
    )

    conversation_id: Key


@dataclass(frozen=True)
class GetConversationOutline(Operation[dict[str, Any] | None]):
    """A conversation without its messages: its owner, length and summary.

    The cost does not depend on its length.
    """

    route = Route(
        "GET",
        "/v1/conversations/{conversation_id}/outline",
        "conversations.outline",
        "Read a conversation without its messages",
        codes=("not_found",),
    )

    conversation_id: Key
