"""Long-term memory as a middleware of LangChain's agents."""

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from langgraph.config import get_config
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
from ..blocking import run_blocking
from ..fallback import DEFAULT_PATIENCE

_DEFAULTS = PromptOptions()


class MemoryMiddleware(AgentMiddleware[Any, Any, Any]):
    """What is known about a user, for the prompts of an agent of `create_agent`.

    A page about the user follows the system prompt, and stays there as it is while a thread goes on. What is
    remembered about the newest message comes right after it, and is in no state. A thread without a
    `thread_id` is known by its first message. If memory fails, that is logged, and the agent goes on without.
    """

    def __init__(
        self,
        store: MemoryStore,
        user_id: str,
        *,
        agent_id: str = "langchain",
        prompt: PromptOptions = _DEFAULTS,
    ) -> None:
        super().__init__()
        self._store = store
        self._owner = check_prompt_owner(agent_id, user_id)
        self._options = prompt

    @override
    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(run_blocking(self._remembering(request, _thread_id())))

    @override
    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        return await handler(await self._remembering(request, _thread_id()))

    async def _remembering(self, request: ModelRequest[Any], thread_id: str | None) -> ModelRequest[Any]:
        messages: list[AnyMessage] = list(request.messages)
        asked = [place for place, message in enumerate(messages) if isinstance(message, HumanMessage)]
        said = [str(messages[place].text) for place in asked]
        parts = await prompts_of(self._store).compose(
            PromptOwner(self._store, *self._owner, thread_id or conversation_key("".join(said[:1]))),
            said[-1] if said else "",
            self._options,
            is_start=thread_id is None and len(asked) == len(messages),
            turn=turn_key(said),
            patience=DEFAULT_PATIENCE,
            seen=[str(message.text) for message in messages],
        )
        if parts.tail and asked:
            messages.insert(asked[-1] + 1, HumanMessage(parts.tail))
        system = request.system_message
        if parts.page:
            system = SystemMessage(parts.after(None if system is None else str(system.text)))
        return request.override(messages=messages, system_message=system)


def _thread_id() -> str | None:
    try:
        found = get_config().get("configurable", {}).get("thread_id")
    except RuntimeError:  # outside of a graph
        return None
    return None if found is None else str(found)
