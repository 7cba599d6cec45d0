"""Instructions that know the user: what is remembered about the current input, after what was given."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from ...items import Tokenizer
from ...memory.conversation import check_owner
from ...memory.hits import Recalled
from ...memory.store import MemoryStore
from ...strategies.summaries.injection import DEFAULT_TOKEN_BUDGET
from .fallback import DEFAULT_PATIENCE, check_budget, or_nothing
from .run_texts import words_of_user

GivenInstructions: TypeAlias = str | Callable[[Any, Any], str | Awaitable[str]] | None
DynamicInstructions: TypeAlias = Callable[[Any, Any], Awaitable[str]]


def remembering_instructions(
    store: MemoryStore,
    instructions: GivenInstructions,
    agent_id: str,
    user_id: str,
    *,
    token_budget: int = DEFAULT_TOKEN_BUDGET,
    tokenizer: Tokenizer | None = None,
    patience: float = DEFAULT_PATIENCE,
) -> DynamicInstructions:
    """Instructions for an `Agent` that add what is remembered about what the user says.

    What is remembered is marked as data and not as instructions, and takes at most `token_budget` tokens. It
    is looked up once in a run for the same words. Where memory fails, or takes longer than `patience`
    seconds, the instructions are as they were given.
    """
    check_owner("agent_id", agent_id)
    check_owner("user_id", user_id)
    check_budget(token_budget)
    asked = partial(
        store.recall, agent_id=agent_id, user_id=user_id, budget=token_budget, tokenizer=tokenizer
    )
    lookup = _Lookup(asked, patience)

    async def with_memory(context: Any, agent: Any) -> str:
        parts = (await _told(instructions, context, agent), await lookup.block_for(context))
        return "\n\n".join(filter(None, parts))

    return with_memory


@dataclass(frozen=True)
class _Lookup:
    """Looks up what is remembered, once for the same words in a run."""

    recall: Callable[[str], Awaitable[Recalled]]
    patience: float
    known: WeakKeyDictionary[Any, tuple[str, str]] = field(default_factory=WeakKeyDictionary, repr=False)

    async def block_for(self, context: Any) -> str:
        """What is remembered about the newest words in a run; nothing if memory fails."""
        question = words_of_user(context.turn_input)
        if not question.strip():
            return ""
        if self.known.get(context, ("",))[0] != question:
            found = await or_nothing("recalling", self.recall(question), self.patience)
            self.known[context] = (question, "" if found is None else found.text)
        return self.known[context][1]


async def _told(instructions: GivenInstructions, context: Any, agent: Any) -> str:
    """What was given, as a text."""
    told = instructions(context, agent) if callable(instructions) else instructions
    return (await told if inspect.isawaitable(told) else told) or ""
