"""The end of a turn: done with its answer in the conversation, or failed with its items undone."""

import logging
from dataclasses import replace

from ...errors import ConflictError, StorageError
from ...memory.conversation import Conversation, Message
from ...memory.times import now
from ..errors import TurnLostError, TurnRunningError
from ..values import ChatReply, ChatTurn
from .active_turn import ActiveTurn, Parts, append_message
from .database.record import TurnRecord, as_failed, reply_from
from .database.turns import ChatTurns
from .runtime import AgentRun
from .sessions import ChatSession, OpenAISQLAlchemySessionStore

logger = logging.getLogger(__name__)

_GONE_ON = "the turn failed, and the conversation has gone on since"


class TurnHistory:
    """The recorded turns of conversations: their replies, and the recovery of interrupted ones."""

    def __init__(self, sessions: OpenAISQLAlchemySessionStore, turns: ChatTurns) -> None:
        self._sessions = sessions
        self._turns = turns

    async def recover_interrupted(self, conversation: Conversation) -> None:
        """End the turns that are recorded as running. A process that died has left them.

        The caller holds the lock of the conversation, so none of its turns can be running.
        """
        for record in await self._turns.list_running(conversation.conversation_id):
            place = await self._turns.find_place(conversation.conversation_id)
            if place is not None:
                async with await self._sessions.open_chat(
                    conversation, place.tenant, place.session_id
                ) as chat:
                    await self.end(chat, as_failed(record, "interrupted", now()))

    async def end(self, chat: ChatSession | None, record: TurnRecord) -> TurnRecord:
        """End a turn as failed and undo the items of its run; end it as done if its answer is stored.

        Returns the turn as it is recorded. A turn that ended earlier stays as it is, and nothing is undone.
        """
        index = await self._turns.answer_index(record)
        if index is not None:
            record = replace(record, status="done", error_code=None, answer_index=index)
        if index is not None or chat is None or record.begins_after is None:
            is_ended = await self._turns.change(record)
        else:
            end_turn = self._turns.change_script(record)
            is_ended = await chat.undo_after(record.branch, record.begins_after, end_turn)
        return record if is_ended else await self._turns.get(record.turn_id) or record

    async def can_run_again(self, turn: ChatTurn, record: TurnRecord) -> bool:
        """Whether a turn may run again: it failed, and its question is still the newest message."""
        if record.status != "failed" or not _is_same_conversation(turn, record):
            return False
        return await _is_newest(turn, record.question_index)

    async def require_newest(self, turn: ChatTurn, question: Message) -> None:
        """Raise a `ConflictError` if there are messages after the question: its answer would come late."""
        if not await _is_newest(turn, question.message_index):
            raise ConflictError(_GONE_ON)

    async def read_reply(self, turn: ChatTurn, record: TurnRecord) -> ChatReply:
        """The reply of a turn that ran before; raises a `ConflictError` if there is none to give."""
        if not _is_same_conversation(turn, record):
            raise ConflictError("another turn has this turn_id")
        if record.status == "running":
            raise TurnRunningError
        if record.status == "failed":
            raise ConflictError(_GONE_ON)
        answer = await self._find_answer(turn, record)
        if answer is None:
            raise ConflictError("the answer of this turn no longer exists")
        return reply_from(record, answer.content)

    async def _find_answer(self, turn: ChatTurn, record: TurnRecord) -> Message | None:
        index = await self._turns.answer_index(record)
        if index is None:
            return None
        after = index - 1 if index else None
        found = await turn.store.list_messages(record.conversation_id, after=after, limit=1)
        return next((each for each in found or () if each.message_id == record.assistant_message_id), None)


def _is_same_conversation(turn: ChatTurn, record: TurnRecord) -> bool:
    owner = (turn.tenant, turn.conversation.conversation_id)
    return (record.tenant, record.conversation_id) == owner


async def _is_newest(turn: ChatTurn, index: int) -> bool:
    return not await turn.store.list_messages(turn.conversation.conversation_id, after=index, limit=1)


class TurnFinisher:
    """Ends active turns. A turn is done once its answer is in the conversation, even if a later step fails.

    The caller lets both methods finish even if the turn is cancelled meanwhile.
    """

    def __init__(self, parts: Parts, history: TurnHistory) -> None:
        self._parts = parts
        self._history = history
        self._pace = parts.runtime.turnstile

    async def complete(self, active: ActiveTurn, run: AgentRun) -> ChatReply:
        """Store the answer, and return the reply."""
        active.record = replace(
            active.record_with_usage,
            agent=run.last_agent,
            model=run.model,
            tool_calls=run.tool_calls,
            memories_used=run.memories_used,
        )
        if not await self._parts.turns.change(active.record):
            raise TurnLostError
        await self._pace()
        await self._meter(active)
        await self._link_answer(active)
        await self._pace()
        # A conversation that was closed after the question still gets the answer.
        quiet = self._parts.options.quiet_seconds
        answer = await append_message(active.turn, "assistant", run.text, quiet, even_if_closed=True)
        await self._pace()
        done = replace(active.record, status="done", finished_at=now(), answer_index=answer.message_index)
        await self._record_done(active, done)
        return reply_from(done, run.text)

    async def _link_answer(self, active: ActiveTurn) -> None:
        """Store which session item is the answer. Without it, erasing finds the item by its words."""
        record = active.record
        if active.chat is None or record.begins_after is None:
            return
        links = self._parts.turns.item_links(record.conversation_id)
        try:
            await active.chat.link_answer(record.assistant_message_id, record.begins_after, links)
        except StorageError as error:
            logger.warning("turn %s: answer not linked (%s)", record.turn_id, type(error).__name__)

    async def fail(self, active: ActiveTurn, code: str) -> ChatReply | None:
        """Record that there is no answer, and restore the session to its state before the run.

        If the answer turns out to be stored, the turn is done, and this returns its reply.
        """
        try:
            await self._meter(active)
            ended = await self._record_failed(active, code)
            if await self._parts.turns.find_place(ended.conversation_id) is None:
                await self._erase(active, ended.conversation_id)
        except StorageError as error:
            _log_unrecorded(active.record, error)
            return None
        if ended.status != "done" or active.run is None:
            return None
        return reply_from(ended, active.run.text)

    async def _record_done(self, active: ActiveTurn, done: TurnRecord) -> None:
        """Record the end of a turn. If the database fails, the next turn finds the answer and records it."""
        try:
            if not await self._parts.turns.change(done):
                raise TurnLostError
        except StorageError as error:
            _log_unrecorded(done, error)
        await self._store_events(active, done, is_done=True)

    async def _record_failed(self, active: ActiveTurn, code: str) -> TurnRecord:
        record = active.record_with_usage
        # Another process may have ended this turn as interrupted: then it must not touch the session.
        if active.chat is not None and await self._parts.turns.change(record):
            await self._store_events(active, record)
        return await self._history.end(active.chat, as_failed(record, code, now()))

    async def _meter(self, active: ActiveTurn) -> None:
        """Count the tokens of this attempt, once."""
        if active.is_metered:
            return
        active.is_metered = True
        turn, tokens = active.turn, active.usage.total_tokens
        if turn.reservation is None:
            await self._parts.meter.spent(turn.tenant, tokens)
        else:
            await turn.reservation.settle(tokens)

    async def _store_events(self, active: ActiveTurn, record: TurnRecord, is_done: bool = False) -> None:
        """Store the usage and the events of the run. A failure is logged and changes nothing of its end."""
        if active.chat is None:
            return
        session, run = active.chat.session, active.run
        try:
            if run is not None:
                await session.store_run_usage(run.result)
            await self._pace()
            await self._parts.events.project(
                session,
                record.conversation_id,
                response_id=run.response_id if is_done and run is not None else None,
                agent=record.agent,
                model=record.model,
            )
        except StorageError as error:
            logger.warning("turn %s: events not stored (%s)", record.turn_id, type(error).__name__)

    async def _erase(self, active: ActiveTurn, conversation_id: str) -> None:
        """Erase everything that the run wrote: the conversation was erased while the turn ran."""
        if active.chat is not None:
            await active.chat.session.clear_session()
            await self._parts.summaries.delete(active.chat.session.session_id)
        await self._parts.events.delete(conversation_id)


def _log_unrecorded(record: TurnRecord, error: StorageError) -> None:
    # The next turn of the conversation recovers this one, and sees whether it has an answer.
    logger.warning("turn %s: end not recorded (%s)", record.turn_id, type(error).__name__)
