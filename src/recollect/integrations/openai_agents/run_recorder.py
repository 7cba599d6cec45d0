"""What is kept of a run: what it cost, what happened in it, and what was said."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import ConflictError
from ...memory.conversation import check_owner
from ...memory.store import MemoryStore
from ...sessions.advanced.usage import run_key
from ...sessions.events import EventLog
from ...sessions.protocol import Session, own_method
from .fallback import DEFAULT_PATIENCE, or_nothing
from .run_texts import words_of_answer, words_of_user

_IDS = uuid.UUID("7a0d3a52-1f5c-5c0f-9d0e-4c1b7a3f6e21")  # what our ids are made in


@dataclass(frozen=True)
class RunRecord:
    """A run, as far as it has come: what the session's `store_run_usage` takes, and what was said."""

    context_wrapper: Any
    raw_responses: Sequence[Any]
    question: str = field(repr=False)
    answer: str = field(repr=False)
    """Empty where the run has no answer: it failed, or it awaits approval."""
    agent: str | None = None
    interruptions: Sequence[Any] = ()
    """Not empty where the run may go on from a saved state."""


@dataclass(frozen=True)
class Keeper:
    """Where runs of one agent with one user are kept."""

    store: MemoryStore
    agent_id: str
    user_id: str
    session: Session | None = None
    events: EventLog | None = None
    conversation_id: str | None = None
    learn_after: float | None = None
    patience: float = DEFAULT_PATIENCE

    def __post_init__(self) -> None:
        check_owner("agent_id", self.agent_id)
        check_owner("user_id", self.user_id)
        if self.events is not None and self.session is None:
            raise ValueError("events are read from a session: give the session of the run")
        if self.learn_after is not None and not self.learn_after >= 0:
            raise ValueError(f"learn_after must be 0 or more seconds, and it is {self.learn_after}")

    async def keep(self, run: RunRecord) -> None:
        """Keep all there is to keep; what fails is logged, and does not keep the rest from being kept."""
        store_usage = None if self.session is None else own_method(self.session, "store_run_usage")
        if store_usage is not None:
            await or_nothing("storing usage", store_usage(run), self.patience)
        if self.events is not None and self.session is not None:
            told = self.events.project(self.session, self.conversation_id, agent=run.agent)
            await or_nothing("storing events", told, self.patience)
        if run.question.strip() and run.answer.strip():
            await or_nothing("recording the turn", self._record(run), self.patience)

    async def _record(self, run: RunRecord) -> None:
        """Go on with the conversation, or begin it."""
        key = run_key(run)
        session_id = self._session_id()
        conversation_id = self.conversation_id or self._made_id(*([session_id] if session_id else key))
        said = (("user", run.question), ("assistant", run.answer))
        messages = [
            {"role": role, "content": text, "message_id": self._made_id(conversation_id, *key, role, text)}
            for role, text in said
        ]
        try:
            await self._append(conversation_id, messages)
        except ConflictError:  # it is not there yet
            await self._begin(conversation_id, messages)

    async def _append(self, conversation_id: str, messages: Sequence[Any]) -> None:
        await self.store.append_messages(conversation_id, messages, learn_after=self.learn_after)

    async def _begin(self, conversation_id: str, messages: Sequence[Any]) -> None:
        session_id = self._session_id()
        await self.store.open_conversation(
            self.agent_id,
            self.user_id,
            session_id=session_id if session_id and len(session_id) <= 255 else None,
            conversation_id=conversation_id,
        )
        await self._append(conversation_id, messages)

    def _session_id(self) -> str | None:
        return None if self.session is None else self.session.session_id

    def _made_id(self, *of: str) -> str:
        """An id that is the same for the same things, and nobody else's."""
        owner = (self.store.tenant, self.agent_id, self.user_id)
        return str(uuid.uuid5(_IDS, json.dumps([*owner, *of])))


async def remember_run(
    result: Any,
    store: MemoryStore,
    agent_id: str,
    user_id: str,
    *,
    session: Session | None = None,
    events: EventLog | None = None,
    conversation_id: str | None = None,
    learn_after: float | None = None,
) -> None:
    """Keep what came of a run: its usage, its events, and what was said, to be learned from.

    `result` is what `Runner.run` returned, or what `Runner.run_streamed` did once its events were read to the
    end. Usage needs a `session` that counts it, such as `AdvancedSQLiteSession`. The turns of one session are
    one conversation; `learn_after` is how many seconds of quiet it takes until they are learned from, with
    `None` they are at once. The same run a second time adds nothing. A run that awaits approval is recorded
    when it has been taken up again. Where memory fails, that is logged, and nothing is raised.
    """
    if not getattr(result, "is_complete", True):
        raise ValueError("the run is not finished: read its stream to the end first")
    keeper = Keeper(store, agent_id, user_id, session, events, conversation_id, learn_after)
    interruptions = getattr(result, "interruptions", None) or ()
    answer = "" if interruptions else words_of_answer(result.final_output, result.raw_responses)
    question = words_of_user(result.input)
    agent = getattr(result.last_agent, "name", None)
    context, responses = result.context_wrapper, result.raw_responses
    await keeper.keep(RunRecord(context, responses, question, answer, agent, interruptions))
