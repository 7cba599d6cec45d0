"""Turns that were there before: their recorded answers, and those that a dead process left behind."""

from dataclasses import replace

from ...errors import ConflictError
from ...memory.conversation import Conversation, Message
from ...memory.store import MemoryStore
from ...memory.times import now
from ..values import ChatReply, ChatTurn
from .chat_session import ChatSession
from .database.record import TurnRecord, failed, reply_of
from .database.turns import ChatTurns
from .failures import TurnRunningError
from .session_store import OpenAISQLAlchemySessionStore

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
