"""Learns about a user from the messages of a thread, after a run."""

from ...errors import InvalidValueError
from ...memory.conversation import Message
from ...memory.store import MemoryStore
from .checkpointer import Checkpointer
from .recording import MESSAGES, ThreadRecorder


async def learn_from_thread(
    checkpointer: Checkpointer,
    store: MemoryStore,
    agent_id: str,
    thread_id: str,
    *,
    user_id: str | None = None,
    channel: str = MESSAGES,
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
    recorder = ThreadRecorder(store, agent_id)
    return await recorder.record(thread_id, user, found.checkpoint["channel_values"].get(channel, []))
