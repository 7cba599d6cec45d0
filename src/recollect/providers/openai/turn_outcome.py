"""How a turn ends: done with its answer in the conversation, or failed with its items undone."""

import logging
from dataclasses import replace

from ...errors import ConflictError, StorageError
from ...memory.conversation import Conversation, Message
from ...memory.store import MemoryStore
from ...memory.times import now
from ..errors import TurnLostError, TurnRunningError
from ..values import ChatReply, ChatTurn
from .active_turn import Parts, UnderWay, append_message, finished
from .database.record import TurnRecord, failed, reply_of
from .database.turns import ChatTurns
from .runtime import Run
from .sessions import ChatSession, OpenAISQLAlchemySessionStore

_GONE_ON = "the turn failed, and the conversation has gone on since"


class Settling:
    """Tells what became of turns. Whoever settles a conversation holds it: no turn of it is running."""

    def __init__(self, store: OpenAISQLAlchemySessionStore, turns: ChatTurns) -> None:
        self._store = store
        self._turns = turns

    async def settle(self, conversation: Conversation) -> None:
        """End the turns that are recorded as running: a dead process has left them."""
        for record in await self._turns.running_in(conversation.conversation_id):
            place = await self._turns.place_of(conversation.conversation_id)
            if place is not None:
                async with await self._store.open_for(
                    conversation, place.tenant, place.session_id
                ) as session:
                    await self.end(session, failed(record, "interrupted", now()))

    async def end(self, session: ChatSession | None, record: TurnRecord) -> TurnRecord:
        """End a turn as failed, and undo what its run wrote; but as done, if its answer is there.

        Returns how it is recorded: one that had ended before stays as it is, and nothing is undone.
        """
        index = await self._turns.answer_index(record)
        if index is not None:
            record = replace(record, status="done", error_code=None, answer_index=index)
        if index is not None or session is None or record.begins_after is None:
            is_ended = await self._turns.change(record)
        else:
            ending = self._turns.changing(record)
            is_ended = await session.undo_after(record.branch, record.begins_after, ending)
        return record if is_ended else await self._turns.get(record.turn_id) or record

    async def may_run_again(self, turn: ChatTurn, record: TurnRecord) -> bool:
        """Whether a turn that failed can be tried once more: nobody has said anything since."""
        mine = (turn.tenant, turn.conversation.conversation_id)
        if record.status != "failed" or (record.tenant, record.conversation_id) != mine:
            return False
        return await _is_newest(turn, record.question_index)

    async def check_newest(self, turn: ChatTurn, question: Message) -> None:
        """Refuse a question that was there before, and after which more was said: nobody would answer it."""
        if not await _is_newest(turn, question.message_index):
            raise ConflictError(_GONE_ON)

    async def recorded(self, turn: ChatTurn, record: TurnRecord) -> ChatReply:
        """The answer of a turn that was run before, or the error that it ended with."""
        mine = (turn.tenant, turn.conversation.conversation_id)
        if (record.tenant, record.conversation_id) != mine:
            raise ConflictError("another turn has this turn_id")
        if record.status == "running":
            raise TurnRunningError
        if record.status == "failed":
            raise ConflictError(_GONE_ON)
        answer = await self._answer(turn.store, record)
        if answer is None:
            raise ConflictError("the answer of this turn is there no more")
        return reply_of(record, answer.content)

    async def _answer(self, memory: MemoryStore, record: TurnRecord) -> Message | None:
        index = await self._turns.answer_index(record)
        if index is None:
            return None
        after = index - 1 if index else None
        found = await memory.list_messages(record.conversation_id, after=after, limit=1)
        return next((each for each in found or () if each.message_id == record.assistant_message_id), None)


async def _is_newest(turn: ChatTurn, index: int) -> bool:
    return not await turn.store.list_messages(turn.conversation.conversation_id, after=index, limit=1)


logger = logging.getLogger(__name__)


class Ending:
    """Ends turns. Once the answer is in the conversation a turn is done, whatever happens then."""

    def __init__(self, parts: Parts, settling: Settling) -> None:
        self._parts = parts
        self._settling = settling

    async def keep(self, going: UnderWay, run: Run) -> ChatReply:
        """Keep the answer, also if the turn is interrupted meanwhile."""
        return await finished(self._keep(going, run))

    async def fail(self, going: UnderWay, code: str) -> ChatReply | None:
        """Leave the session as it was when the model was asked, and record that there is no answer.

        If there is one after all, the turn is done, and this is its answer.
        """
        return await finished(self._fail(going, code))

    async def _keep(self, going: UnderWay, run: Run) -> ChatReply:
        going.record = replace(
            going.counted,
            agent=run.last_agent,
            model=run.model,
            tool_calls=run.tool_calls,
            memories_used=run.memories_used,
        )
        if not await self._parts.turns.change(going.record):
            raise TurnLostError
        await self._count(going)
        await self._link_answer(going)
        # Whoever closed the conversation meanwhile closed it to questions; this one was asked before.
        quiet = self._parts.options.quiet_seconds
        answer = await append_message(going.turn, "assistant", run.text, quiet, even_if_closed=True)
        done = replace(going.record, status="done", finished_at=now(), answer_index=answer.message_index)
        await self._note(going, done, run)
        return reply_of(done, run.text)

    async def _link_answer(self, going: UnderWay) -> None:
        """Store which session item is the answer. Without it, erasing finds the item by its words."""
        record, log = going.record, going.log
        if log is None or record.begins_after is None:
            return
        links = self._parts.turns.item_links(record.conversation_id)
        try:
            await log.link_answer(record.assistant_message_id, record.begins_after, links)
        except StorageError as error:
            logger.warning("turn %s: its answer is not linked (%s)", record.turn_id, type(error).__name__)

    async def _note(self, going: UnderWay, done: TurnRecord, run: Run) -> None:
        """Record that there is an answer; where that cannot be, the next turn finds it."""
        try:
            if not await self._parts.turns.change(done):
                raise TurnLostError
        except StorageError as error:
            _log_unrecorded(done, error)
        if going.log is not None:
            await self._note_happened(going.log, done, run, run.response_id)

    async def _fail(self, going: UnderWay, code: str) -> ChatReply | None:
        try:
            await self._count(going)
            ended = await self._end(going, code)
            if await self._parts.turns.place_of(ended.conversation_id) is None:
                await self._forget(going.log, ended.conversation_id)
        except StorageError as error:
            _log_unrecorded(going.record, error)
            return None
        if ended.status != "done" or going.run is None:
            return None
        return reply_of(ended, going.run.text)

    async def _end(self, going: UnderWay, code: str) -> TurnRecord:
        record, log = going.counted, going.log
        # A turn that was taken for interrupted, as its process was too slow, has no say in the session.
        if log is not None and await self._parts.turns.change(record):
            await self._note_happened(log, record, going.run)
        return await self._settling.end(log, failed(record, code, now()))

    async def _count(self, going: UnderWay) -> None:
        """Tell the meter what the turn cost, once."""
        if going.is_counted:
            return
        going.is_counted = True
        turn, tokens = going.turn, going.usage.total_tokens
        if turn.reservation is None:
            await self._parts.meter.spent(turn.tenant, tokens)
        else:
            await turn.reservation.settle(tokens)

    async def _note_happened(
        self, log: ChatSession, record: TurnRecord, run: Run | None, response_id: str | None = None
    ) -> None:
        """Note what the run cost and what happened in it; that this fails changes nothing of its end."""
        try:
            if run is not None:
                await log.store_run_usage(run.result)
            await self._parts.events.project(
                log, record.conversation_id, response_id=response_id, agent=record.agent, model=record.model
            )
        except StorageError as error:
            logger.warning("turn %s: its events are not noted (%s)", record.turn_id, type(error).__name__)

    async def _forget(self, log: ChatSession | None, conversation_id: str) -> None:
        """The conversation was erased while the turn ran: nothing that the run wrote may stay."""
        if log is not None:
            await log.clear_session()
            await self._parts.summaries.delete(log.session_id)
        await self._parts.events.delete(conversation_id)


def _log_unrecorded(record: TurnRecord, error: StorageError) -> None:
    # The next turn finds it as one that was left, and sees whether it has an answer.
    logger.warning("turn %s: its end is not recorded (%s)", record.turn_id, type(error).__name__)
