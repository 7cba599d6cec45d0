"""Long-term memory as hooks of an agent of Strands."""

from typing import Any

from strands.hooks import (
    AfterModelCallEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    HookProvider,
    HookRegistry,
)
from strands.types.content import ContentBlock, Message
from typing_extensions import override

from ...memory.prompting import (
    PromptOptions,
    PromptOwner,
    check_prompt_owner,
    conversation_key,
    prompts_of,
    turn_key,
)
from ...memory.store import MemoryStore
from ..fallback import DEFAULT_PATIENCE

_DEFAULTS = PromptOptions()


class MemoryHooks(HookProvider):  # type: ignore[misc] # it has no types here
    """What is known about a user, for the prompts of an agent.

    A page about the user follows the system prompt, and stays there as it is while a conversation goes on.
    What is remembered about the newest message comes after its text while a model is called, and is in no
    session. Give the `session_id` of the session manager; without one, a conversation is known by its first
    message. If memory fails, that is logged, and the agent goes on without it.
    """

    def __init__(
        self,
        store: MemoryStore,
        user_id: str,
        *,
        agent_id: str = "strands",
        session_id: str | None = None,
        prompt: PromptOptions = _DEFAULTS,
    ) -> None:
        self._store = store
        self._owner = check_prompt_owner(agent_id, user_id)
        self._session_id = session_id
        self._options = prompt
        self._own_prompt: Any = None
        self._added: ContentBlock | None = None

    @override
    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Listen to the calls of models."""
        registry.add_callback(BeforeInvocationEvent, self._start)
        registry.add_callback(BeforeModelCallEvent, self._add)
        registry.add_callback(AfterModelCallEvent, self._remove)

    async def _start(self, event: BeforeInvocationEvent) -> None:
        self._added = None
        self._own_prompt = event.agent.system_prompt_content

    async def _add(self, event: BeforeModelCallEvent) -> None:
        messages = event.agent.messages
        asked = [message for message in messages if message["role"] == "user" and _text_of(message)]
        said = [_text_of(message) for message in asked]
        conversation = self._session_id or conversation_key("".join(said[:1]))
        parts = await prompts_of(self._store).compose(
            PromptOwner(self._store, *self._owner, conversation),
            said[-1] if said else "",
            self._options,
            is_start=self._session_id is None and len(asked) == len(messages),
            turn=turn_key(said),
            patience=DEFAULT_PATIENCE,
            seen=[_text_of(message) for message in messages],
        )
        if parts.page:
            event.agent.system_prompt = [*(self._own_prompt or ()), {"text": parts.page}]
        if parts.tail and asked:
            self._added = {"text": parts.tail}
            asked[-1]["content"].append(self._added)

    async def _remove(self, event: AfterModelCallEvent) -> None:
        event.agent.system_prompt = self._own_prompt
        for message in event.agent.messages:
            message["content"][:] = [block for block in message["content"] if block is not self._added]
        self._added = None


def _text_of(message: Message) -> str:
    return "\n".join(block["text"] for block in message["content"] if "text" in block)
