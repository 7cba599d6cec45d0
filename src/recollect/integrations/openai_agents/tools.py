"""Tools with which an agent reads and writes memory. The caller fixes whose memory, not the model."""

from dataclasses import dataclass, field
from typing import Any

from agents import FunctionTool, function_tool

from ...memory.conversation import check_owner
from ...memory.entry import ContentType
from ...memory.guard.steering import STEERING_REFUSED, find_steering
from ...memory.store import MemoryStore
from ...memory.times import read_date
from ...strategies.summaries.injection import DEFAULT_TOKEN_BUDGET
from ..fallback import DEFAULT_PATIENCE, check_budget, result_or_none

_LONGEST = 1000  # characters of one statement
_CONFIDENCE = 0.8  # a model wrote it, and may have misunderstood the user
_DOWN = "Memory is not available at the moment. Go on without it."
_NOTHING = "Nothing is remembered about that."
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
        call = store.recall(query, agent_id, user_id, budget=token_budget)
        found = await result_or_none("recalling", call, patience)
        return _DOWN if found is None else found.text or _NOTHING

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
        new = _Statement(text.strip(), kind, happened_on or None)
        if refused := new.refusal():
            return refused
        return await result_or_none("remembering", new.write(store, agent_id, user_id), patience) or _DOWN

    return remember


@dataclass(frozen=True)
class _Statement:
    """A statement that a model wants to store."""

    text: str = field(repr=False)
    kind: ContentType
    happened_on: str | None

    def refusal(self) -> str | None:
        """The reply to the model if the statement is invalid, else `None`."""
        if not self.text:
            return "Nothing was remembered: text must not be empty."
        if len(self.text) > _LONGEST:
            return f"Nothing was remembered: text must not be longer than {_LONGEST} characters. Shorten it."
        if find_steering(self.text):
            return f"Nothing was remembered: {STEERING_REFUSED}."
        try:
            read_date("happened_on", self.happened_on)
        except ValueError as error:
            return f"Nothing was remembered: {error}."
        return None

    async def write(self, store: MemoryStore, agent_id: str, user_id: str) -> str:
        """Store the statement, unless an entry says the same; returns the reply to the model."""
        entry, is_new = await store.add_entry_unless_known(
            agent_id,
            user_id,
            self.kind,
            self.text,
            valid_from=self.happened_on,
            confidence=_CONFIDENCE,
            unless_rejected=True,
        )
        if entry.rejected_at is not None:
            return "Nothing was remembered: a person has rejected this statement."
        return "Remembered." if is_new else "That is remembered already."


def _check_owner(agent_id: str, user_id: str) -> None:
    check_owner("agent_id", agent_id)
    check_owner("user_id", user_id)


def _refusal(_context: Any, _error: Exception) -> str:
    """The reply to a model that calls a tool with wrong arguments."""
    return _BAD_ARGUMENTS
