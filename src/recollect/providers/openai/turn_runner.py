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
from ...memory.times import now
from ..errors import ChatFailedError, ConversationBusyError, failure_code
from ..values import ChatEvent, ChatReply, ChatTurn
from .active_turn import ActiveTurn, Parts, append_script, check_message, message_id
from .context import build_memory_strategy_config, is_injected, prepare_run_context
from .database.record import TurnRecord
from .remote_conversations import RemoteConversations
from .run_session import RunSession
from .runtime import AgentRun, started_event
from .sessions import ChatSession, mirror_messages
from .turn_outcome import TurnFinisher, TurnHistory
from .turn_scripts import Beginning, Begun, SessionBehindError

logger = logging.getLogger(__name__)

Emit: TypeAlias = Callable[[ChatEvent], None]

_CATCHING_UP = 3  # tries, as other writers may add messages meanwhile


class TurnRunner:
    """Runs turns, one at a time in each conversation."""

    def __init__(self, parts: Parts, history: TurnHistory, remote: RemoteConversations) -> None:
        self._parts = parts
        self._history = history
        self._remote = remote
        self._finisher = TurnFinisher(parts)
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
        strategy = build_memory_strategy_config(turn, settings, descriptor)
        is_injected(turn, settings, descriptor)
        async with self._lock(turn, self._parts.options.lock_seconds):
            await self._pace()
            earlier = await self._history.recover_interrupted(turn)
            if earlier is not None and not await self._history.can_run_again(turn, earlier):
                return await self._history.read_reply(turn, earlier)
            session_id = await self._remote.find_session_id(turn, settings)
            chat = self._parts.sessions.chat(turn.conversation, turn.tenant, session_id)
            view = self._parts.view(chat, strategy)
            afterwards.push_async_callback(view.aclose)
            usage = ModelUsage() if earlier is None else earlier.usage
            begun = await self._begin(turn, chat, usage)
            active = ActiveTurn(turn, descriptor, settings, chat, RunSession(view), begun, usage)
            return await self._answer(active, emit)

    def _lock(self, turn: ChatTurn, timeout: float) -> AbstractAsyncContextManager[None]:
        lease = self._parts.options.lease_seconds
        return self._parts.sessions.lock(turn.conversation.conversation_id, timeout, lease)

    async def _begin(self, turn: ChatTurn, chat: ChatSession, usage: ModelUsage) -> Begun:
        """Store the message of the user, and record the turn as running."""
        parts, conversation_id = self._parts, turn.conversation.conversation_id
        await parts.events.prepare()
        append = append_script(turn, "user", turn.message, parts.options.quiet_seconds)
        beginning = Beginning(self._new_record(turn, usage), append, parts.turns.item_links(conversation_id))
        for _ in range(_CATCHING_UP):
            try:
                return await chat.run(beginning.write)
            except SessionBehindError:
                await mirror_messages(chat, turn.store, parts.turns, conversation_id)
                await parts.events.project(chat.session, conversation_id)
                await self._pace()
        return await chat.run(replace(beginning, must_be_level=False).write)

    def _new_record(self, turn: ChatTurn, usage: ModelUsage) -> TurnRecord:
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
            message_id(turn.turn_id, "user"),
            message_id(turn.turn_id, "assistant"),
            usage,
        )

    async def _answer(self, active: ActiveTurn, emit: Emit) -> ChatReply:
        """Run the agent and end the turn, as done or as failed."""
        record = active.begun.record
        emit(started_event(record.turn_id, record.conversation_id, record.agent, record.model))
        try:
            async with asyncio.timeout(self._parts.options.timeout_seconds):
                run = await self._run_agent(active, emit)
            return await finish_ignoring_cancellation(self._finisher.complete(active, run))
        except asyncio.CancelledError:
            await finish_ignoring_cancellation(self._finisher.fail(active, "interrupted"))
            raise
        except Exception as error:
            code: str = "interrupted" if isinstance(error, ConflictError) else failure_code(error)
            code = await finish_ignoring_cancellation(self._finisher.fail(active, code))
            log_failure(record.turn_id, code, error)
            raise ChatFailedError(code) from error

    async def _run_agent(self, active: ActiveTurn, emit: Emit) -> AgentRun:
        await self._pace()
        context = await prepare_run_context(
            active.turn,
            active.settings,
            active.descriptor,
            session_id=active.session.session_id,
            summaries=self._parts.summaries,
            user_message_id=active.begun.record.user_message_id,
            token_budget=self._parts.options.injection_tokens,
            prompts=self._parts.prompts,
            read_mark=self._parts.turns.page_mark,
        )
        active.remembered = context.remembered
        await self._pace()
        active.run = run = self._parts.runtime.start(active.descriptor, context, active.session)
        async for event in run.events():
            emit(event)
        if not run.text.strip():
            raise ChatFailedError("model_failed")
        return run


def log_failure(turn_id: str, code: str, error: BaseException) -> None:
    """Log a failed turn with the place of the error. Its message may quote contents, so it is left out."""
    trace, place = error.__traceback__, "?"
    while trace is not None:
        place = f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}"
        trace = trace.tb_next
    logger.warning("turn %s failed: %s (%s at %s)", turn_id, code, type(error).__name__, place)
