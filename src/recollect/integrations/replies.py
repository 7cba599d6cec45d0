"""What a tool of memory replies to a model, in every framework."""

from dataclasses import dataclass, field

from ..memory.entry import ContentType
from ..memory.guard.steering import STEERING_REFUSED, find_steering
from ..memory.store import MemoryStore
from ..memory.times import read_date
from .fallback import DEFAULT_PATIENCE, result_or_none

_LONGEST = 1000  # characters of one statement
_CONFIDENCE = 0.8  # a model wrote it, and may have misunderstood the user
_DOWN = "Memory is not available at the moment. Go on without it."
_NOTHING = "Nothing is remembered about that."


async def recall_text(
    store: MemoryStore,
    agent_id: str,
    user_id: str,
    query: str,
    token_budget: int,
    patience: float = DEFAULT_PATIENCE,
) -> str:
    """What is remembered about a question. If memory fails, the reply says so."""
    call = store.recall(query, agent_id, user_id, budget=token_budget)
    found = await result_or_none("recalling", call, patience)
    return _DOWN if found is None else found.text or _NOTHING


async def remember_text(
    store: MemoryStore,
    agent_id: str,
    user_id: str,
    statement: "Statement",
    patience: float = DEFAULT_PATIENCE,
) -> str:
    """Store a statement. The reply says why, if it was not stored."""
    if refused := statement.refusal():
        return refused
    return await result_or_none("remembering", statement.write(store, agent_id, user_id), patience) or _DOWN


@dataclass(frozen=True)
class Statement:
    """A statement that a model wants to store."""

    text: str = field(repr=False)
    kind: ContentType
    happened_on: str | None

    def refusal(self) -> str | None:
        """The reply to the model if the statement is invalid, else `None`."""
        if not self.text.strip():
            return "Nothing was remembered: text must not be empty."
        if len(self.text) > _LONGEST:
            return f"Nothing was remembered: text must not be longer than {_LONGEST} characters. Shorten it."
        if find_steering(self.text):
            return f"Nothing was remembered: {STEERING_REFUSED}."
        try:
            read_date("happened_on", self.happened_on or None)
        except ValueError as error:
            return f"Nothing was remembered: {error}."
        return None

    async def write(self, store: MemoryStore, agent_id: str, user_id: str) -> str:
        """Store the statement, unless an entry says the same; returns the reply to the model."""
        entry, is_new = await store.add_entry_unless_known(
            agent_id,
            user_id,
            self.kind,
            self.text.strip(),
            valid_from=self.happened_on or None,
            confidence=_CONFIDENCE,
            unless_rejected=True,
        )
        if entry.rejected_at is not None:
            return "Nothing was remembered: a person has rejected this statement."
        return "Remembered." if is_new else "That is remembered already."
