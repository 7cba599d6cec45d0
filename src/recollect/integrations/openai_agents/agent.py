"""An agent with memory, derived from one without."""

from typing import Any

from agents import Agent

from ...memory.prompting import PromptOptions, check_prompt_owner
from ...memory.store import MemoryStore
from ..fallback import DEFAULT_PATIENCE
from .prompting import RememberedPrompt, TailHooks
from .tools import recall_tool, remember_tool

_DEFAULTS = PromptOptions()


def with_memory(
    agent: Agent[Any],
    store: MemoryStore,
    user_id: str,
    *,
    agent_id: str | None = None,
    conversation_id: str | None = None,
    prompt: PromptOptions = _DEFAULTS,
    patience: float = DEFAULT_PATIENCE,
    tools: bool = True,
) -> Agent[Any]:
    """A copy of an agent that remembers one user, by its prompt and the tools `recall` and `remember`.

    What is known about the user follows the instructions, and stays there unchanged while a conversation goes
    on. What is remembered about the current input comes after it, and is in no session. Both are marked as
    data. If memory fails or takes longer than `patience` seconds, the run goes on without it.

    `agent_id` defaults to the agent's name. If the provider keeps the history, give the `conversation_id`:
    others are known by their first message. The agents that it hands over to do not change.
    Use `MemoryHooks` or `remember_run` to record its runs, so that there is something to remember.
    """
    owner = check_prompt_owner(agent.name if agent_id is None else agent_id, user_id)
    budget = prompt.tail_budget
    added = [recall_tool(store, *owner, token_budget=budget), remember_tool(store, *owner)] if tools else []
    remembered = RememberedPrompt(store, *owner, prompt, conversation_id, patience)
    return agent.clone(
        instructions=remembered.instructions(agent.instructions),
        hooks=TailHooks(remembered, agent.hooks),
        tools=[*agent.tools, *added],
    )
