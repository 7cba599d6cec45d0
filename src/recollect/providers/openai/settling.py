"""Turns that were there before: their recorded answers, and those that a dead process left behind."""

from dataclasses import replace

from ...errors import ConflictError
from ...memory.conversation import Conversation, Message
from ...memory.store import MemoryStore
from ...memory.times import now
from ..values import ChatReply, ChatTurn
from .database.record import TurnRecord, failed, reply_of
from .database.turns import ChatTurns
from .failures import TurnRunningError
from .session_store import OpenAISQLAlchemySessionStore

_AT_ONCE = 100  # messages


class Settling:
    """Tells what became of turns. Whoever settles a conversation holds it: no turn of it is running."""

    def __init__(self, store: OpenAISQLAlchemySessionStore, turns: ChatTurns) -> None:
        self._store = store
        self._turns = turns

    async def settle(self, memory: MemoryStore, conversation: Conversation, tenant: str) -> None:
        """End the turns that are recorded as running: a dead process has left them."""
        for record in await self._turns.running_in(conversation.conversation_id):
            answer = await _find_answer(memory, record)
            if answer is None:
                await self._undo(conversation, tenant, record)
                await self._turns.change(failed(record, "interrupted", now()))
            else:
                index = answer.message_index
                ended = replace(record, status="done", finished_at=now(), answer_index=index)
                await self._turns.change(ended)

    async def may_run_again(self, turn: ChatTurn, record: TurnRecord) -> bool:
        """Whether a turn that failed can be tried once more: nobody has said anything since."""
        mine = (turn.tenant, turn.conversation.conversation_id)
        if record.status != "failed" or (record.tenant, record.conversation_id) != mine:
            return False
        after = record.question_index
        return not await turn.store.list_messages(record.conversation_id, after=after, limit=1)

    async def recorded(self, turn: ChatTurn, record: TurnRecord) -> ChatReply:
        """The answer of a turn that was run before, or the error that it ended with."""
        mine = (turn.tenant, turn.conversation.conversation_id)
        if (record.tenant, record.conversation_id) != mine:
            raise ConflictError("another turn has this turn_id")
        if record.status == "running":
            raise TurnRunningError
        if record.status == "failed":
            raise ConflictError("the turn failed, and the conversation has gone on since")
        answer = await _find_answer(turn.store, record)
        if answer is None:
            raise ConflictError("the answer of this turn is there no more")
        return reply_of(record, answer.content)

    async def _undo(self, conversation: Conversation, tenant: str, record: TurnRecord) -> None:
        place = await self._turns.place_of(conversation.conversation_id)
        if place is not None:
            session = await self._store.open_for(conversation, tenant, place.session_id)
            async with session:
                await session.undo_after(record.branch, record.begins_after)


async def _find_answer(memory: MemoryStore, record: TurnRecord) -> Message | None:
    """The answer of a turn: where it is recorded to be, or somewhere after the question."""
    is_known = record.answer_index is not None
    after, limit = (
        (record.answer_index or 0) - 1 if is_known else record.question_index,
        1 if is_known else _AT_ONCE,
    )
    while found := await memory.list_messages(record.conversation_id, after=after, limit=limit):
        for message in found:
            if message.message_id == record.assistant_message_id:
                return message
        if is_known:
            break
        after = found[-1].message_index
    return None
