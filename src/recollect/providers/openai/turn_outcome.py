"""The end of a turn: done with its answer in the conversation, or failed without a trace in the session."""

import logging
from dataclasses import replace

from ...errors import ConflictError, StorageError
from ...memory.conversation import Message
from ...memory.database.message_items import ItemLinks
from ...memory.times import now
from ...sessions.advanced.usage import RunProgress
from ...sessions.events.event import Origin
from ..errors import TurnRunningError
from ..values import ChatReply, ChatTurn
from .active_turn import ActiveTurn, Parts, append_script
from .database.record import TurnRecord, as_failed, reply_from
from .database.turns import ChatTurns
from .options import OFFLINE
from .runtime import AgentRun
from .turn_scripts import Completion, Failure, RunTrace

logger = logging.getLogger(__name__)

_GONE_ON = "the turn failed, and the conversation has gone on since"


class TurnHistory:
    """The recorded turns of conversations: their replies, and the recovery of interrupted ones."""

    def __init__(self, turns: ChatTurns) -> None:
        self._turns = turns

    async def recover_interrupted(self, turn: ChatTurn) -> TurnRecord | None:
        """End the running turns of a conversation: a process that died has left them.

        Returns the record of this turn, if it has one. The caller holds the lock of the conversation, so none
        of its turns can be running.
        """
        conversation_id = turn.conversation.conversation_id
        found = await self._turns.find_open(conversation_id, turn.turn_id)
        ended = [await self._interrupt(each, conversation_id) for each in found]
        return next((each for each in ended if each.turn_id == turn.turn_id), None)

    async def end_running(self, conversation_id: str) -> None:
        """The same for a caller that has no turn."""
        for record in await self._turns.list_running(conversation_id):
            await self._interrupt(record, conversation_id)

    async def _interrupt(self, record: TurnRecord, conversation_id: str) -> TurnRecord:
        if record.status != "running" or record.conversation_id != conversation_id:
            return record
        ended = as_failed(record, "interrupted", now())
        await self._turns.change(ended)
        return ended

    async def can_run_again(self, turn: ChatTurn, record: TurnRecord) -> bool:
        """Whether a turn may run again: it failed, and its question is still the newest message."""
        if record.status != "failed" or not _is_same_conversation(turn, record):
            return False
        return await _is_newest(turn, record.question_index)

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
        index = record.answer_index
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
    """Ends active turns: with the answer and all that belongs to it, or with a failure.

    The caller lets both methods finish even if the turn is cancelled meanwhile.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._pace = parts.runtime.turnstile

    async def complete(self, active: ActiveTurn, run: AgentRun) -> ChatReply:
        """Store the answer, and return the reply."""
        await self._meter(active)
        quiet = self._parts.options.quiet_seconds
        record = replace(
            active.record_with_usage,
            status="done",
            finished_at=now(),
            agent=run.last_agent,
            model=run.model,
            tool_calls=run.tool_calls,
            memories_used=run.memories_used,
        )
        completion = Completion(
            active.begun,
            record,
            # A conversation that was closed after the question still gets the answer.
            append_script(
                active.turn,
                "assistant",
                run.text,
                quiet,
                is_notice=run.model == OFFLINE,  # it quotes what was said, and would be found before it
                even_if_closed=True,
            ),
            self._links(active),
            _trace(active, record, run.response_id),
        )
        done = await active.chat.run(completion.write)
        active.turn.store.writer.announce_work()
        active.session.view.prepare_summary(active.session.items)
        await self._pace()
        return reply_from(done, run.text)

    async def fail(self, active: ActiveTurn, code: str) -> str:
        """Record that there is no answer. The session is as it was before the run.

        Returns the code of the failure, which is "interrupted" if the turn was erased or ended elsewhere: the
        error of its run is a consequence of that.
        """
        record = as_failed(active.record_with_usage, code, now())
        failure = Failure(active.begun, record, self._links(active), _trace(active, record))
        try:
            await self._meter(active)
            is_recorded = await active.chat.run(failure.write)
            if is_recorded is None:
                await self._erase(active, record.conversation_id)
            active.turn.store.writer.announce_work()  # the question is stored
        except StorageError as error:
            # The next turn of the conversation ends this one.
            logger.warning("turn %s: end not recorded (%s)", record.turn_id, type(error).__name__)
            return code
        return code if is_recorded else "interrupted"

    def _links(self, active: ActiveTurn) -> ItemLinks:
        return self._parts.turns.item_links(active.turn.conversation.conversation_id)

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

    async def _erase(self, active: ActiveTurn, conversation_id: str) -> None:
        """Erase what a summary of the run may have written: the conversation was erased meanwhile."""
        await active.chat.session.clear_session()
        await self._parts.summaries.delete(active.session.session_id)
        await self._parts.events.delete(conversation_id)


def _trace(active: ActiveTurn, record: TurnRecord, response_id: str | None = None) -> RunTrace:
    """What the run of a turn leaves, as far as it has come."""
    session, run = active.session, active.run
    origin = Origin(response_id, record.agent, record.model, None)
    progress = None if run is None else RunProgress.of_result(run.result)
    return RunTrace(list(session.items), list(session.encoded), progress, origin)
