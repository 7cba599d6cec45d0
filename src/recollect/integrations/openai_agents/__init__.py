"""Memory for agents of the OpenAI Agents SDK: prompts, tools, and records of runs."""

from ...extras import require_extra

require_extra("agents", "agents", "recollect.integrations.openai_agents")

from .agent import with_memory  # noqa: E402
from .hooks import MemoryHooks  # noqa: E402
from .run_recorder import remember_run  # noqa: E402
from .tools import recall_tool, remember_tool  # noqa: E402

__all__ = [
    "MemoryHooks",
    "recall_tool",
    "remember_run",
    "remember_tool",
    "with_memory",
]
