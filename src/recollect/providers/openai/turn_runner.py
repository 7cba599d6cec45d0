"""One turn of a chat, from the message of the user to the answer, and what is left of it if it fails."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace

from ...errors import ConflictError
from ...items import ModelUsage
from ...memory.conversation import Message
from ...memory.times import now
from ..errors import ChatFailedError, ConversationBusyError, TurnLostError, code_of
from ..values import ChatEvent, ChatReply, ChatTurn
from .active_turn import Parts, UnderWay, append_message, check_message, message_id
from .context import RunContext, Said, build_memory_strategy_config, is_injected, prepare_run_context
from .database.record import TurnRecord
from .registry import AgentDescriptor
from .remote_conversations import SessionNames
from .runtime import Run, started_event
from .sessions import alone_on, log_of, mirror_messages
from .turn_outcome import Ending, Settling

logger = logging.getLogger(__name__)

Tell = Callable[[ChatEvent], None]


class TurnRunner:
    """Runs turns, one at a time on each conversation."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._names = SessionNames(parts.runtime, parts.sessions.store, parts.turns, parts.options)
        self.settling = Settling(parts.sessions.store, parts.turns)
        self._ending = Ending(parts, self.settling)

    async def is_free(self, turn: ChatTurn) -> bool:
        """Whether nobody holds the conversation of a turn."""
        try:
            async with self._alone(turn, timeout=0):
                return True
        except ConversationBusyError:
            return False

    def _alone(self, turn: ChatTurn, timeout: float) -> AbstractAsyncContextManager[None]:
        store, lease = self._parts.sessions.store, self._parts.options.lease_seconds
        return alone_on(store, turn.conversation.conversation_id, timeout, lease)

    async def run(self, turn: ChatTurn, tell: Tell, afterwards: AsyncExitStack) -> ChatReply:
        """Run a turn and return its answer, or give the one that was recorded for this turn.

        What need not be done before the answer is told, as waiting for a summary, is left to `afterwards`.
        """
        descriptor = self._parts.runtime.registry.get(turn.agent)
        check_message(turn.message)
        await self._parts.runtime.turnstile()  # of many that come at once, each is begun by itself
        said = await self._said(turn)
        build_memory_strategy_config(turn, said, descriptor)  # a bad one is refused before anything is done
        is_injected(turn, said, descriptor)
        async with self._alone(turn, self._parts.options.lock_seconds):
            await self.settling.settle(turn.conversation)
            earlier = await self._parts.turns.get(turn.turn_id)
            if earlier is not None and not await self.settling.may_run_again(turn, earlier):
                return await self.settling.recorded(turn, earlier)
            going = await self._begin(turn, descriptor, earlier)
            return await self._answered(going, said, tell, afterwards)

    async def _said(self, turn: ChatTurn) -> Said:
        settings = await turn.store.get_conversation_settings(turn.conversation.conversation_id)
        if settings is None:
            raise ConflictError("there is no conversation with this conversation_id")
        return Said(settings.memory_strategy, settings.memory_injection)

    async def _begin(
        self, turn: ChatTurn, descriptor: AgentDescriptor, earlier: TurnRecord | None
    ) -> UnderWay:
        """Make the message durable, and record at once that the turn has begun."""
        begun_at = now()
        question = await append_message(turn, "user", turn.message, self._parts.options.quiet_seconds)
        if earlier is None and question.created_at < begun_at:
            # It was written by one who died before the turn was recorded.
            await self.settling.check_newest(turn, question)
        before = ModelUsage() if earlier is None else earlier.usage
        record = replace(self._new_record(turn, question), usage=before)
        if not await self._parts.turns.begin(record):
            raise ConflictError("another turn has this turn_id")
        return UnderWay(turn, descriptor, record, before)

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

    async def _answered(
        self, going: UnderWay, said: Said, tell: Tell, afterwards: AsyncExitStack
    ) -> ChatReply:
        record = going.record
        tell(started_event(record.turn_id, record.conversation_id, record.agent, record.model))
        try:
            async with asyncio.timeout(self._parts.options.timeout_seconds):
                run = await self._run(going, await self._prepare(going, said, afterwards), tell)
            return await self._ending.keep(going, run)
        except asyncio.CancelledError:
            reply = await self._ending.fail(going, "interrupted")
            if reply is None:
                raise
        except Exception as error:
            code = "interrupted" if isinstance(error, ConflictError) else code_of(error)
            log_failure(record.turn_id, code, error)
            reply = await self._ending.fail(going, code)
            if reply is None and going.run is None and _is_refusal(error):
                raise
            if reply is None:
                raise ChatFailedError(code) from error
        return reply

    async def _prepare(self, going: UnderWay, said: Said, afterwards: AsyncExitStack) -> RunContext:
        """Bring the session up to the message, and find what is put before the model beside it."""
        parts, turn = self._parts, going.turn
        session_id = await self._names.session_id_of(turn)
        strategy = build_memory_strategy_config(turn, said, going.descriptor)
        session = await parts.sessions.acquire_session(turn.conversation, turn.tenant, session_id, strategy)
        afterwards.push_async_callback(session.aclose)
        going.session, log = session, log_of(session)
        await mirror_messages(log, turn.store, parts.turns, turn.conversation.conversation_id)
        await parts.events.project(log, turn.conversation.conversation_id)
        await self._note_place(going)
        log.write_only_while(parts.turns.is_running(turn.turn_id))
        return await prepare_run_context(
            turn,
            said,
            going.descriptor,
            session_id=session_id,
            summaries=parts.summaries,
            user_message_id=going.record.user_message_id,
            token_budget=parts.options.injection_tokens,
        )

    async def _note_place(self, going: UnderWay) -> None:
        """Record where the items of the run begin, so that whoever finds them can undo them."""
        assert going.log is not None
        place = await going.log.place()
        session_turn = (place.branch, place.last_turn)
        going.record = replace(going.record, session_turn=session_turn, begins_after=place.last_id)
        if not await self._parts.turns.change(going.record):
            raise TurnLostError

    async def _run(self, going: UnderWay, context: RunContext, tell: Tell) -> Run:
        assert going.session is not None
        await self._parts.runtime.turnstile()
        run = self._parts.runtime.start(going.descriptor, context, going.session)
        going.run = run
        async for event in run.events():
            tell(event)
        if not run.text.strip():
            raise ChatFailedError("model_failed")
        return run


def _is_refusal(error: Exception) -> bool:
    """Whether it says that the conversation cannot be chatted in, and not that a turn went wrong."""
    return isinstance(error, ConflictError) and not isinstance(error, TurnLostError)


def log_failure(turn_id: str, code: str, error: BaseException) -> None:
    """Say that a turn failed, and where: what the error says may quote a user or a provider."""
    trace, place = error.__traceback__, "?"
    while trace is not None:
        place = f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}"
        trace = trace.tb_next
    logger.warning("turn %s failed: %s (%s at %s)", turn_id, code, type(error).__name__, place)
