"""What was said in a conversation, as items of its session: recorded messages are seen by the model, too."""

from collections.abc import Sequence, Set

from ...items import Item
from ...memory.conversation import Message
from ...memory.store import MemoryStore
from .chat_session import ChatSession
from .database.turns import ChatTurns

_AT_ONCE = 500  # messages


def item_of(message: Message) -> Item:
    """A message as the Agents SDK writes one; halves of characters, which no API takes, are replaced."""
    return {"role": message.role, "content": message.content.encode("utf-8", "replace").decode()}


def items_to_add(messages: Sequence[Message], answers: Set[str]) -> list[Item]:
    """The messages as items, without the answers of chats: those a run has put there itself."""
    return [item_of(message) for message in messages if message.message_id not in answers]


async def mirror_messages(
    session: ChatSession, store: MemoryStore, turns: ChatTurns, conversation_id: str
) -> None:
    """Append to a session what its conversation has and it has not, some at a time."""
    is_whole = False
    while not is_whole:
        first = await session.mirrored()
        after = first - 1 if first else None
        found = await store.list_messages(conversation_id, after=after, limit=_AT_ONCE) or []
        if not found:
            return
        answers = await turns.answers_among(conversation_id, found)
        was_mine = await session.mirror(items_to_add(found, answers), first, found[-1].message_index + 1)
        is_whole = was_mine and len(found) < _AT_ONCE
