"""Instructions with memory: the given text, and the memories about the current input after it."""

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
from ..fallback import DEFAULT_PATIENCE, check_budget, result_or_none
from .run_texts import user_text

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
    """Instructions for an `Agent`, followed by the memories about the user's input.

    The memories are marked as data, not as instructions, and take at most `token_budget` tokens. A run looks
    them up once for the same input. If memory fails or takes longer than `patience` seconds, the instructions
    stay as they were given.
    """
    check_owner("agent_id", agent_id)
    check_owner("user_id", user_id)
    check_budget(token_budget)
    recall = partial(
        store.recall, agent_id=agent_id, user_id=user_id, budget=token_budget, tokenizer=tokenizer
    )
    lookup = _Lookup(recall, patience)

    async def with_memory(context: Any, agent: Any) -> str:
        parts = (await _resolve(instructions, context, agent), await lookup.block_for(context))
        return "\n\n".join(filter(None, parts))

    return with_memory


@dataclass(frozen=True)
class _Lookup:
    """Recalls memories once for the same input in a run."""

    recall: Callable[[str], Awaitable[Recalled]]
    patience: float
    cache: WeakKeyDictionary[Any, tuple[str, str]] = field(default_factory=WeakKeyDictionary, repr=False)

    async def block_for(self, context: Any) -> str:
        """The block of memories about the newest input of a run; empty if memory fails."""
        question = user_text(context.turn_input)
        if not question.strip():
            return ""
        if self.cache.get(context, ("",))[0] != question:
            found = await result_or_none("recalling", self.recall(question), self.patience)
            self.cache[context] = (question, "" if found is None else found.text)
        return self.cache[context][1]


async def _resolve(instructions: GivenInstructions, context: Any, agent: Any) -> str:
    """The given instructions as a text."""
    text = instructions(context, agent) if callable(instructions) else instructions
    return (await text if inspect.isawaitable(text) else text) or ""
