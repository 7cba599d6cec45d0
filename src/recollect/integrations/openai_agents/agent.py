"""An agent with memory, made of one without."""

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
    """A copy of an agent that remembers one user: by its instructions, and by `recall` and `remember` tools.

    The agent's name is its `agent_id`, unless another is given. With `tools=False` it is told what is
    remembered and cannot look for more, or write anything down. Agents that it hands over to stay as they
    are. That there is something to remember is up to `MemoryHooks` or `remember_run`.
    """
    owner = (agent.name if agent_id is None else agent_id, user_id)
    added = [recall_tool(store, *owner), remember_tool(store, *owner)] if tools else []
    instructions = remembering_instructions(store, agent.instructions, *owner, token_budget=token_budget)
    return agent.clone(instructions=instructions, tools=[*agent.tools, *added])
