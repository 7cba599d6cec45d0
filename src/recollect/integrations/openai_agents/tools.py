"""Tools with which an agent reads and writes memory. The caller fixes whose memory, not the model."""

from typing import Any

from agents import FunctionTool, function_tool

from ...memory.conversation import check_owner
from ...memory.entry import ContentType
from ...memory.store import MemoryStore
from ...strategies.summaries.injection import DEFAULT_TOKEN_BUDGET
from ..fallback import DEFAULT_PATIENCE, check_budget
from ..replies import Statement, recall_text, remember_text

_BAD_ARGUMENTS = "Nothing was done: the arguments are not those that the tool asks for."


def recall_tool(
    store: MemoryStore,
    agent_id: str,
    user_id: str,
    *,
    token_budget: int = DEFAULT_TOKEN_BUDGET,
    patience: float = DEFAULT_PATIENCE,
    name: str = "recall",
) -> FunctionTool:
    """A tool that searches the memories of this user. Its output is marked as data."""
    _check_owner(agent_id, user_id)
    check_budget(token_budget)

    @function_tool(name_override=name, failure_error_function=_refusal)
    async def recall(query: str) -> str:
        """Look up what is remembered about the user from earlier conversations.

        Args:
            query: What to look for, as a question or a few words.
        """
        return await recall_text(store, agent_id, user_id, query, token_budget, patience)

    return recall


def remember_tool(
    store: MemoryStore,
    agent_id: str,
    user_id: str,
    *,
    patience: float = DEFAULT_PATIENCE,
    name: str = "remember",
) -> FunctionTool:
    """A tool that stores what the agent has learned about this user.

    A statement that is known already is not stored twice. Its evidence follows when the conversation is
    recorded, as `MemoryHooks` and `remember_run` do, and a run learns from it.
    """
    _check_owner(agent_id, user_id)

    @function_tool(name_override=name, failure_error_function=_refusal)
    async def remember(text: str, kind: ContentType, happened_on: str | None = None) -> str:
        """Remember something that the user said about themselves, for later conversations.

        Args:
            text: One statement about the user in the third person, such as "The user lives in Lisbon."
            kind: profile: who the user is; event: what happened; mind: what they think, feel or want;
                instruction: how they want to be answered from now on.
            happened_on: For an event its date, such as 2024-05-07, 2024-05 or 2024; else null.
        """
        return await remember_text(store, agent_id, user_id, Statement(text, kind, happened_on), patience)

    return remember


def _check_owner(agent_id: str, user_id: str) -> None:
    check_owner("agent_id", agent_id)
    check_owner("user_id", user_id)


def _refusal(_context: Any, _error: Exception) -> str:
    """The reply to a model that calls a tool with wrong arguments."""
    return _BAD_ARGUMENTS
