"""One turn of a chat, from the message of the user to the answer, and what is left of it if it fails."""

import asyncio
import logging
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, replace

from ...errors import ConflictError, StorageError
from ...memory.conversation import Message
from ...memory.times import now
from ...strategies.session import StrategySession
from ..values import ChatEvent, ChatReply, ChatTurn, ChatUsage
from . import streaming
from .context import RunContext, Said, build_memory_strategy_config, is_injected, prepare_run_context
from .database.record import TurnRecord, failed, reply_of
from .failures import ChatFailedError, ConversationBusyError, code_of
from .locking import alone_on
from .mirroring import mirror_messages
from .naming import SessionNames
from .parts import Parts
from .registry import AgentDescriptor
from .runtime import Run
from .sessions import log_of
from .settling import Settling

logger = logging.getLogger(__name__)

Tell = Callable[[ChatEvent], None]
_IDS = uuid.UUID("8f1d5a52-6f0c-4a55-9a3e-6d1f5f0c1c8e")


def message_id(turn_id: str, role: str) -> str:
    """The id of a turn's message, always the same, so that nothing is written twice."""
    return str(uuid.uuid5(_IDS, f"{turn_id}/{role}"))


@dataclass
class _Started:
    """A turn that is on its way."""

    turn: ChatTurn
    descriptor: AgentDescriptor
    session: StrategySession
    record: TurnRecord
    context: RunContext
    run: Run | None = None

    @property
    def usage(self) -> ChatUsage:
        """What it has cost so far."""
        return ChatUsage() if self.run is None else self.run.usage


class TurnRunner:
    """Runs turns, one at a time on each conversation."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._names = SessionNames(parts.runtime, parts.sessions.store, parts.turns, parts.options)
        self.settling = Settling(parts.sessions.store, parts.turns)

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
        said = await self._said(turn)
        build_memory_strategy_config(turn, said, descriptor)  # a bad one is refused before anything is done
        is_injected(turn, said, descriptor)
        async with self._alone(turn, self._parts.options.lock_seconds):
            await self.settling.settle(turn.store, turn.conversation, turn.tenant)
            earlier = await self._parts.turns.get(turn.turn_id)
            if earlier is not None and not await self.settling.may_run_again(turn, earlier):
                return await self.settling.recorded(turn, earlier)
            return await self._answered(await self._start(turn, said, descriptor, afterwards), tell)

    async def _said(self, turn: ChatTurn) -> Said:
        settings = await turn.store.get_conversation_settings(turn.conversation.conversation_id)
        if settings is None:
            raise ConflictError("there is no conversation with this conversation_id")
        return Said(settings.memory_strategy, settings.memory_injection)

    async def _start(
        self, turn: ChatTurn, said: Said, descriptor: AgentDescriptor, afterwards: AsyncExitStack
    ) -> _Started:
        """Make the message durable, bring the session up to it, and record that the turn has begun."""
        parts, conversation_id = self._parts, turn.conversation.conversation_id
        question = await self._append(turn, "user", turn.message)
        session_id = await self._names.session_id_of(turn)
        strategy = build_memory_strategy_config(turn, said, descriptor)
        session = await parts.sessions.acquire_session(turn.conversation, turn.tenant, session_id, strategy)
        afterwards.push_async_callback(session.aclose)
        log = log_of(session)
        await mirror_messages(log, turn.store, parts.turns, conversation_id)
        await parts.events.project(log, conversation_id)
        context = await prepare_run_context(
            turn,
            said,
            descriptor,
            session_id=session_id,
            summaries=parts.summaries,
            user_message_id=question.message_id,
            token_budget=parts.options.injection_tokens,
        )
        return _Started(turn, descriptor, session, await self._begin(turn, session, question), context)

    async def _begin(self, turn: ChatTurn, session: StrategySession, question: Message) -> TurnRecord:
        place = await log_of(session).place()
        record = TurnRecord(
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
            session_turn=(place.branch, place.last_turn),
            question_index=question.message_index,
            begins_after=place.last_id,
        )
        if not await self._parts.turns.begin(record):
            raise ConflictError("another turn has this turn_id")
        return record

    async def _answered(self, started: _Started, tell: Tell) -> ChatReply:
        record = started.record
        tell(streaming.started(record.turn_id, record.conversation_id, record.agent, record.model))
        try:
            return await self._finish(started, await self._run(started, tell))
        except asyncio.CancelledError:
            await self._fail(started, "interrupted")
            raise
        except Exception as error:
            code = "interrupted" if isinstance(error, ConflictError) else code_of(error)
            log_failure(record.turn_id, code, error)
            await self._fail(started, code)
            raise ChatFailedError(code) from error

    async def _run(self, started: _Started, tell: Tell) -> Run:
        run = self._parts.runtime.start(started.descriptor, started.context, started.session)
        started.run = run
        async for event in run.events():
            tell(event)
        if not run.text.strip():
            raise ChatFailedError("model_failed")
        return run

    async def _finish(self, started: _Started, run: Run) -> ChatReply:
        """Keep the answer: first of all in the conversation."""
        parts, turn = self._parts, started.turn
        answer = await self._append(turn, "assistant", run.text)
        done = replace(
            started.record,
            agent=run.last_agent,
            status="done",
            model=run.model,
            finished_at=now(),
            usage=run.usage,
            tool_calls=run.tool_calls,
            memories_used=run.offline.shown if run.offline else started.context.memories_used,
            answer_index=answer.message_index,
        )
        log = log_of(started.session)
        await log.store_run_usage(run.result)
        await parts.events.project(
            log, done.conversation_id, response_id=run.response_id, agent=done.agent, model=done.model
        )
        await parts.meter.spent(turn.tenant, done.usage.total_tokens)
        if not await parts.turns.change(done):
            raise ConflictError("the turn was taken for interrupted")
        return reply_of(done, run.text)

    async def _fail(self, started: _Started, code: str) -> None:
        """Leave the session as it was when the model was asked, and record that there is no answer."""
        parts, record, log = self._parts, started.record, log_of(started.session)
        try:
            if started.run is not None:
                await log.store_run_usage(started.run.result)
            await parts.events.project(log, record.conversation_id, agent=record.agent, model=record.model)
            await log.undo_after(record.branch, record.begins_after)
            await parts.meter.spent(record.tenant, started.usage.total_tokens)
            await parts.turns.change(failed(record, code, now(), started.usage))
            if await parts.turns.place_of(record.conversation_id) is None:
                await self._forget(started)
        except StorageError as error:
            # The next turn finds it as one that was interrupted.
            logger.warning("turn %s: its end is not recorded (%s)", record.turn_id, type(error).__name__)

    async def _forget(self, started: _Started) -> None:
        """The conversation was erased while the turn ran: nothing that the run wrote may stay."""
        log, conversation_id = log_of(started.session), started.record.conversation_id
        await log.clear_session(all_branches=True)
        await self._parts.events.delete(conversation_id)
        await self._parts.summaries.delete(log.session_id)

    async def _append(self, turn: ChatTurn, role: str, text: str) -> Message:
        message = {"role": role, "content": text, "message_id": message_id(turn.turn_id, role)}
        quiet = self._parts.options.quiet_seconds
        placed = await turn.store.append_messages(
            turn.conversation.conversation_id, [message], learn_after=quiet
        )
        return placed[0]


def check_message(message: object) -> None:
    """Refuse what no model can be asked."""
    if not isinstance(message, str):
        raise TypeError(f"message must be text, not {type(message).__name__}")
    if not message.strip():
        raise ValueError("message must not be empty")
    try:
        message.encode()
    except UnicodeEncodeError:
        raise ValueError("message holds half a character, which cannot be sent") from None


def log_failure(turn_id: str, code: str, error: BaseException) -> None:
    """Say that a turn failed, and where: what the error says may quote a user or a provider."""
    trace, place = error.__traceback__, "?"
    while trace is not None:
        place = f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}"
        trace = trace.tb_next
    logger.warning("turn %s failed: %s (%s at %s)", turn_id, code, type(error).__name__, place)
