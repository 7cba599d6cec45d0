"""Learns about a user from the messages of a thread."""

from uuid import NAMESPACE_URL, uuid5

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from ...errors import InvalidValueError
from ...memory.conversation import Message
from ...memory.store import MemoryStore
from .checkpointer import Checkpointer

_ROLES: dict[type, str] = {HumanMessage: "user", AIMessage: "assistant"}


async def learn_from_thread(
    checkpointer: Checkpointer,
    store: MemoryStore,
    agent_id: str,
    thread_id: str,
    *,
    user_id: str | None = None,
    channel: str = "messages",
) -> list[Message]:
    """Record what was said in a thread, so that it is learned. Returns the messages that are new.

    The texts of people and answers in the newest checkpoint are messages of one conversation. Calling it
    again after each run records what was added since. The user is the `user_id` of the thread's config,
    unless one is given. Raises `InvalidValueError` if there is neither a thread nor a user.
    """
    found = await checkpointer.aget_tuple({"configurable": {"thread_id": thread_id}})
    user = user_id or (found.metadata.get("user_id") if found else None)
    if found is None or not isinstance(user, str):
        raise InvalidValueError(f"thread {thread_id!r} does not exist, or names no user: give a user_id")
    conversation_id = str(uuid5(NAMESPACE_URL, f"recollect:langgraph/{store.tenant}/{agent_id}/{thread_id}"))
    said = [_message(conversation_id, each) for each in found.checkpoint["channel_values"].get(channel, [])]
    await store.open_conversation(agent_id, user, session_id=thread_id, conversation_id=conversation_id)
    conversation = await store.get_conversation(conversation_id)
    known = {message.message_id for message in conversation.messages} if conversation else set()
    new = [each for each in said if each is not None and each["message_id"] not in known]
    return await store.append_messages(conversation_id, new) if new else []


def _message(conversation_id: str, message: object) -> dict[str, str] | None:
    """A message with an id that stays the same; `None` for anything that nobody said."""
    role = _ROLES.get(type(message))
    if role is None or not isinstance(message, BaseMessage) or not message.text.strip():
        return None
    own = message.id or message.text
    return {
        "role": role,
        "content": message.text,
        "message_id": str(uuid5(NAMESPACE_URL, f"{conversation_id}/{own}")),
    }
