"""An agent with memory, derived from one without."""

from typing import Any

from agents import Agent

from ...memory.store import MemoryStore
from ...strategies.summaries.injection import DEFAULT_TOKEN_BUDGET
from .instructions import remembering_instructions
from .tools import recall_tool, remember_tool


def with_memory(
    agent: Agent[Any],
    store: MemoryStore,
    user_id: str,
    *,
    agent_id: str | None = None,
    token_budget: int = DEFAULT_TOKEN_BUDGET,
    tools: bool = True,
) -> Agent[Any]:
    """A copy of an agent that remembers one user, by its instructions and the tools `recall` and `remember`.

    `agent_id` defaults to the agent's name. With `tools=False` the instructions hold memories, but the agent
    cannot search for more or store any. The agents that it hands over to do not change. Use `MemoryHooks` or
    `remember_run` to record its runs, so that there is something to remember.
    """
    owner = (agent.name if agent_id is None else agent_id, user_id)
    added = [recall_tool(store, *owner), remember_tool(store, *owner)] if tools else []
    instructions = remembering_instructions(store, agent.instructions, *owner, token_budget=token_budget)
    return agent.clone(instructions=instructions, tools=[*agent.tools, *added])
