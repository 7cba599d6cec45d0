"""Records of runs: their usage, their events, and their messages."""

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
from ..fallback import DEFAULT_PATIENCE, result_or_none
from .run_texts import answer_text, user_text

_IDS = uuid.UUID("7a0d3a52-1f5c-5c0f-9d0e-4c1b7a3f6e21")  # the namespace of our ids


@dataclass(frozen=True)
class RunRecord:
    """A run at its end or its interruption: the input of `store_run_usage`, and its messages."""

    context_wrapper: Any
    raw_responses: Sequence[Any]
    question: str = field(repr=False)
    answer: str = field(repr=False)
    """Empty if the run has no answer: it failed, or it waits for approval."""
    agent: str | None = None
    interruptions: Sequence[Any] = ()
    """Not empty if the run may go on from a saved state."""


@dataclass(frozen=True)
class RunRecorder:
    """Records the runs of one agent with one user."""

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
            raise ValueError("events need a session: pass the session of the run")
        if self.learn_after is not None and not self.learn_after >= 0:
            raise ValueError(f"learn_after must be 0 or more seconds, not {self.learn_after}")

    async def record(self, run: RunRecord) -> None:
        """Record the usage, the events and the messages. A failure of one is logged, and the others go on."""
        store_usage = None if self.session is None else own_method(self.session, "store_run_usage")
        if store_usage is not None:
            await result_or_none("storing usage", store_usage(run), self.patience)
        if self.events is not None and self.session is not None:
            project = self.events.project(self.session, self.conversation_id, agent=run.agent)
            await result_or_none("storing events", project, self.patience)
        if run.question.strip() and run.answer.strip():
            await result_or_none("recording the turn", self._record_messages(run), self.patience)

    async def _record_messages(self, run: RunRecord) -> None:
        """Append to the conversation, or open it first if it does not exist."""
        key = run_key(run)
        session_id = self._session_id()
        conversation_id = self.conversation_id or self._derive_id(*([session_id] if session_id else key))
        said = (("user", run.question), ("assistant", run.answer))
        messages = [
            {"role": role, "content": text, "message_id": self._derive_id(conversation_id, *key, role, text)}
            for role, text in said
        ]
        try:
            await self._append(conversation_id, messages)
        except ConflictError:  # the conversation does not exist yet
            await self._open(conversation_id, messages)

    async def _append(self, conversation_id: str, messages: Sequence[Any]) -> None:
        await self.store.append_messages(conversation_id, messages, learn_after=self.learn_after)

    async def _open(self, conversation_id: str, messages: Sequence[Any]) -> None:
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

    def _derive_id(self, *of: str) -> str:
        """An id that is the same for the same input, and that no other agent or user has."""
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
    """Record a run: its usage, its events, and its messages, to learn from.

    `result` is the result of `Runner.run`, or that of `Runner.run_streamed` after its events were read to the
    end. Usage needs a `session` that counts it, such as `AdvancedSQLiteSession`. The turns of one session are
    one conversation. Learning starts after `learn_after` seconds of quiet, and at once with `None`. Recording
    a run twice adds nothing. A run that waits for approval is recorded when it has gone on. If memory fails,
    that is logged, and nothing is raised.
    """
    if not getattr(result, "is_complete", True):
        raise ValueError("the run is not finished: read its stream to the end first")
    recorder = RunRecorder(store, agent_id, user_id, session, events, conversation_id, learn_after)
    interruptions = getattr(result, "interruptions", None) or ()
    answer = "" if interruptions else answer_text(result.final_output, result.raw_responses)
    question = user_text(result.input)
    agent = getattr(result.last_agent, "name", None)
    context, responses = result.context_wrapper, result.raw_responses
    await recorder.record(RunRecord(context, responses, question, answer, agent, interruptions))
