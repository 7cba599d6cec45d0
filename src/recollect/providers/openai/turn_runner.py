"""One turn of a chat, from the message of the user to the answer."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from typing import TypeAlias

from ...cancellation import finish_ignoring_cancellation
from ...errors import ConflictError
from ...items import ModelUsage
from ...memory.conversation import ConversationSettings, Message
from ...memory.times import now
from ...strategies.session import StrategySession
from ..errors import ChatFailedError, ConversationBusyError, TurnLostError, failure_code
from ..values import ChatEvent, ChatReply, ChatTurn
from .active_turn import ActiveTurn, Parts, append_message, check_message, message_id
from .context import build_memory_strategy_config, is_injected, prepare_run_context
from .database.record import TurnRecord
from .registry import AgentDescriptor
from .remote_conversations import RemoteConversations
from .runtime import AgentRun, started_event
from .sessions import mirror_messages
from .turn_outcome import TurnFinisher, TurnHistory

logger = logging.getLogger(__name__)

Emit: TypeAlias = Callable[[ChatEvent], None]


class TurnRunner:
    """Runs turns, one at a time in each conversation."""

    def __init__(self, parts: Parts, history: TurnHistory, remote: RemoteConversations) -> None:
        self._parts = parts
        self._history = history
        self._remote = remote
        self._finisher = TurnFinisher(parts, history)
        # Many turns that wait for one commit, or for the same lock of a file, go on at the same time: without
        # this between their steps, they would block the event loop together.
        self._pace = parts.runtime.turnstile

    async def is_free(self, turn: ChatTurn) -> bool:
        """Whether no turn holds the lock of the conversation."""
        try:
            async with self._lock(turn, timeout=0):
                return True
        except ConversationBusyError:
            return False

    async def run(self, turn: ChatTurn, emit: Emit, afterwards: AsyncExitStack) -> ChatReply:
        """Run a turn and return its reply, or the recorded reply if the turn ran before.

        `emit` receives the events. Work that may follow the reply, such as waiting for a summary, goes to
        `afterwards`.
        """
        descriptor = self._parts.runtime.registry.get(turn.agent)
        check_message(turn.message)
        await self._parts.runtime.load()  # before anything that has a time limit
        await self._pace()
        settings = await turn.store.get_conversation_settings(turn.conversation.conversation_id)
        if settings is None:
            raise ConflictError("there is no conversation with this conversation_id")
        # Both raise an error for bad values, before anything is stored.
        build_memory_strategy_config(turn, settings, descriptor)
        is_injected(turn, settings, descriptor)
        async with self._lock(turn, self._parts.options.lock_seconds):
            await self._pace()
            await self._history.recover_interrupted(turn.conversation)
            earlier = await self._parts.turns.get(turn.turn_id)
            if earlier is not None and not await self._history.can_run_again(turn, earlier):
                return await self._history.read_reply(turn, earlier)
            active = await self._begin(turn, descriptor, settings, earlier)
            return await self._answer(active, emit, afterwards)

    def _lock(self, turn: ChatTurn, timeout: float) -> AbstractAsyncContextManager[None]:
        lease = self._parts.options.lease_seconds
        return self._parts.sessions.lock(turn.conversation.conversation_id, timeout, lease)

    async def _begin(
        self,
        turn: ChatTurn,
        descriptor: AgentDescriptor,
        settings: ConversationSettings,
        earlier: TurnRecord | None,
    ) -> ActiveTurn:
        """Store the message of the user, and record the turn as running."""
        begun_at = now()
        question = await append_message(turn, "user", turn.message, self._parts.options.quiet_seconds)
        await self._pace()
        if earlier is None and question.created_at < begun_at:
            # An attempt stored the question and died before it recorded the turn.
            await self._history.require_newest(turn, question)
        usage = ModelUsage() if earlier is None else earlier.usage
        record = replace(self._new_record(turn, question), usage=usage)
        if not await self._parts.turns.begin(record):
            raise ConflictError("another turn has this turn_id")
        return ActiveTurn(turn, descriptor, settings, record, usage)

    def _new_record(self, turn: ChatTurn, question: Message) -> TurnRecord:
        return TurnRecord(
            turn.turn_id,
            turn.tenant,
            turn.conversation.conversation_id,
            turn.agent,
            "running",
            None,
            self._parts.runtime.model_of(turn.agent),
            now(),
            None,
            question.message_id,
            message_id(turn.turn_id, "assistant"),
            question_index=question.message_index,
        )

    async def _answer(self, active: ActiveTurn, emit: Emit, afterwards: AsyncExitStack) -> ChatReply:
        """Run the agent and end the turn, as done or as failed."""
        record = active.record
        emit(started_event(record.turn_id, record.conversation_id, record.agent, record.model))
        try:
            async with asyncio.timeout(self._parts.options.timeout_seconds):
                run = await self._run_agent(active, emit, afterwards)
            return await finish_ignoring_cancellation(self._finisher.complete(active, run))
        except asyncio.CancelledError:
            reply = await finish_ignoring_cancellation(self._finisher.fail(active, "interrupted"))
            if reply is None:
                raise
        except Exception as error:
            code = "interrupted" if isinstance(error, ConflictError) else failure_code(error)
            log_failure(record.turn_id, code, error)
            reply = await finish_ignoring_cancellation(self._finisher.fail(active, code))
            if reply is None and active.run is None and _is_refusal(error):
                raise
            if reply is None:
                raise ChatFailedError(code) from error
        return reply

    async def _run_agent(self, active: ActiveTurn, emit: Emit, afterwards: AsyncExitStack) -> AgentRun:
        await self._pace()
        view = await self._open_view(active, afterwards)
        await self._pace()
        context = await prepare_run_context(
            active.turn,
            active.settings,
            active.descriptor,
            session_id=view.session_id,
            summaries=self._parts.summaries,
            user_message_id=active.record.user_message_id,
            token_budget=self._parts.options.injection_tokens,
        )
        await self._pace()
        active.run = run = self._parts.runtime.start(active.descriptor, context, view)
        async for event in run.events():
            emit(event)
        if not run.text.strip():
            raise ChatFailedError("model_failed")
        return run

    async def _open_view(self, active: ActiveTurn, afterwards: AsyncExitStack) -> StrategySession:
        """Open the session, append the messages that it does not have, and record where the run begins.

        The session refuses writes once the turn has ended: a run that lost its conversation to another
        process, and does not know it yet, writes nothing.
        """
        parts, turn = self._parts, active.turn
        conversation_id = turn.conversation.conversation_id
        active.chat = chat = await parts.sessions.open_chat(
            turn.conversation,
            turn.tenant,
            await self._remote.find_session_id(turn),
            write_guard=parts.turns.require_running(turn.turn_id),
        )
        view = parts.view(chat, build_memory_strategy_config(turn, active.settings, active.descriptor))
        afterwards.push_async_callback(view.aclose)
        await mirror_messages(chat, turn.store, parts.turns, conversation_id)
        await self._pace()
        await parts.events.project(chat.session, conversation_id)
        await self._pace()
        place = await chat.read_place()
        # The recovery of an interrupted turn removes the items after this place.
        session_turn = (place.branch, place.last_turn)
        active.record = replace(active.record, session_turn=session_turn, begins_after=place.last_id)
        if not await parts.turns.change(active.record):
            raise TurnLostError
        return view


def _is_refusal(error: Exception) -> bool:
    """Whether an error refuses the conversation as a whole, and not this attempt."""
    return isinstance(error, ConflictError) and not isinstance(error, TurnLostError)


def log_failure(turn_id: str, code: str, error: BaseException) -> None:
    """Log a failed turn with the place of the error. Its message may quote contents, so it is left out."""
    trace, place = error.__traceback__, "?"
    while trace is not None:
        place = f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}"
        trace = trace.tb_next
    logger.warning("turn %s failed: %s (%s at %s)", turn_id, code, type(error).__name__, place)
