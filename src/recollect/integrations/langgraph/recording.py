"""Records the messages of threads in long-term memory, so that they are learned from."""

import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from ...errors import RecollectError
from ...memory.conversation import Message
from ...memory.store import MemoryStore

MESSAGES = "messages"
"""The channel whose messages are learned from."""
_ROLES: dict[type, str] = {HumanMessage: "user", AIMessage: "assistant"}
_MOST_THREADS = 1000  # threads whose recorded messages are remembered

_log = logging.getLogger(__name__)


class ThreadRecorder:
    """Records what is said in threads, each message once."""

    def __init__(self, store: MemoryStore, agent_id: str) -> None:
        self.store = store
        self._agent_id = agent_id
        self._recorded: OrderedDict[str, set[str]] = OrderedDict()
        """The ids of the messages of a conversation that were looked at."""

    async def record(self, thread_id: str, user_id: str, messages: Sequence[Any]) -> list[Message]:
        """Record the messages that are new. The conversation is opened if it does not exist."""
        scope = f"recollect:langgraph/{self.store.tenant}/{self._agent_id}/{thread_id}"
        conversation_id = str(uuid5(NAMESPACE_URL, scope))
        known = self._recorded.get(conversation_id)
        if known is None:
            known = await self._open(conversation_id, thread_id, user_id)
        new = _new_messages(conversation_id, messages, known)
        said = [each for each in map(_to_record, new.values(), new) if each is not None]
        added = await self.store.append_messages(conversation_id, said) if said else []
        self._remember(conversation_id, known | new.keys())
        return added

    async def record_quietly(self, thread_id: str, user_id: str, messages: Sequence[Any]) -> None:
        """Record messages beside a graph, whose run goes on if that fails: the next step catches up."""
        try:
            await self.record(thread_id, user_id, messages)
        except RecollectError as error:
            _log.warning("messages of a thread were not recorded", extra={"error": type(error).__name__})

    async def _open(self, conversation_id: str, thread_id: str, user_id: str) -> set[str]:
        await self.store.open_conversation(
            self._agent_id, user_id, session_id=thread_id, conversation_id=conversation_id
        )
        conversation = await self.store.get_conversation(conversation_id)
        return {message.message_id for message in conversation.messages} if conversation else set()

    def _remember(self, conversation_id: str, known: set[str]) -> None:
        self._recorded.pop(conversation_id, None)
        self._recorded[conversation_id] = known
        while len(self._recorded) > _MOST_THREADS:
            self._recorded.popitem(last=False)


def _new_messages(conversation_id: str, messages: Sequence[Any], known: set[str]) -> dict[str, Any]:
    """The messages after the last known one, by the ids that they are recorded under."""
    new: dict[str, Any] = {}
    for message in reversed(messages):
        if not isinstance(message, BaseMessage):
            continue
        message_id = str(uuid5(NAMESPACE_URL, f"{conversation_id}/{message.id or message.text}"))
        if message_id in known:
            break
        new[message_id] = message
    return dict(reversed(new.items()))


def _to_record(message: BaseMessage, message_id: str) -> dict[str, str] | None:
    """A message to record; `None` for anything that nobody said."""
    role = _ROLES.get(type(message))
    if role is None or not message.text.strip():
        return None
    return {"role": role, "content": message.text, "message_id": message_id}
