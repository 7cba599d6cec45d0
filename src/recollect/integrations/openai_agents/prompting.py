"""The prompts of an agent: a page about the user after its instructions, a tail after the question."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from agents import Agent, AgentHooks

from ...items import is_start, is_user_message, text_of, with_tail
from ...memory.prompting import (
    PromptOptions,
    PromptOwner,
    PromptParts,
    PromptStore,
    conversation_key,
    prompts_of,
    turn_key,
)
from .run_texts import user_text

GivenInstructions: TypeAlias = str | Callable[[Any, Any], str | Awaitable[str]] | None


@dataclass(frozen=True)
class RememberedPrompt:
    """The page and the tail of each run of an agent for one user.

    Without a `conversation_id`, a conversation is known by its first message.
    """

    store: PromptStore
    agent_id: str
    user_id: str
    options: PromptOptions
    conversation_id: str | None
    patience: float
    cache: WeakKeyDictionary[Any, tuple[str, PromptParts]] = field(
        default_factory=WeakKeyDictionary, repr=False
    )

    def instructions(self, given: GivenInstructions) -> Callable[[Any, Any], Awaitable[str]]:
        """Instructions for an `Agent`: the given ones, and the page after them."""

        async def with_page(context: Any, agent: Any) -> str:
            own = given(context, agent) if callable(given) else given
            own = await own if inspect.isawaitable(own) else own
            return (await self.parts_for(context)).after(own)

        return with_page

    async def parts_for(self, context: Any) -> PromptParts:
        """The page and the tail for the newest input of a run, composed once for the same input."""
        items = [item for item in context.turn_input if isinstance(item, dict)]
        said = [text_of(item) for item in items if is_user_message(item)]
        turn = turn_key(said)
        cached = self.cache.get(context)
        if cached is None or cached[0] != turn:
            conversation = self.conversation_id or (conversation_key(said[0]) if said else None)
            owner = PromptOwner(self.store, self.agent_id, self.user_id, conversation)
            parts = await prompts_of(self.store).compose(
                owner,
                user_text(items),
                self.options,
                is_start=is_start(items) and self.conversation_id is None,
                turn=turn,
                patience=self.patience,
                seen=[text_of(item) for item in items],
            )
            cached = self.cache[context] = (turn, parts)
        return cached[1]


class TailHooks(AgentHooks[Any]):
    """Hooks of an agent that put the tail into the input of each call of the model, and into no session.

    The SDK passes the list that it then sends. All other calls go to the agent's own hooks.
    """

    def __init__(self, prompt: RememberedPrompt, own: Any) -> None:
        self._prompt = prompt
        self._own = own or AgentHooks[Any]()

    async def on_llm_start(
        self, context: Any, agent: Agent[Any], system_prompt: str | None, input_items: list[Any]
    ) -> None:
        """Put the tail after the newest message of the user."""
        await self._own.on_llm_start(context, agent, system_prompt, input_items)
        parts = await self._prompt.parts_for(context)
        input_items[:] = with_tail(input_items, parts.tail)

    async def on_llm_end(self, *given: Any) -> None:
        """Pass it on."""
        await self._own.on_llm_end(*given)

    async def on_start(self, *given: Any) -> None:
        """Pass it on."""
        await self._own.on_start(*given)

    async def on_end(self, *given: Any) -> None:
        """Pass it on."""
        await self._own.on_end(*given)

    async def on_handoff(self, *given: Any) -> None:
        """Pass it on."""
        await self._own.on_handoff(*given)

    async def on_tool_start(self, *given: Any) -> None:
        """Pass it on."""
        await self._own.on_tool_start(*given)

    async def on_tool_end(self, *given: Any) -> None:
        """Pass it on."""
        await self._own.on_tool_end(*given)
