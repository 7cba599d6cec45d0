"""Records what is said in a session as messages of a conversation, so that it is searched and learned from.

The session is the truth. A note of it says up to which position its messages are recorded, so a process that
is killed between the two loses nothing: the next call records the rest. Ids of messages follow from
positions, so nothing is recorded twice. If the item at the noted position is gone, the session was rewritten,
and its messages are compared with the recorded ones by their words.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

from ..errors import ConflictError
from ..items import role_of, text_of
from ..items.originals import ERASED
from ..memory.rights.receipt import Receipt
from ..memory.store import MemoryStore
from ..sessions.protocol import Noted, Positioned, PositionedItem, Session, require_ability
from .fallback import result_or_none

_NOTE = "recorded"
_ROLES = ("user", "assistant")


@dataclass
class Recorder:
    """Records the messages of one session. The conversation has the id of the session."""

    memory: MemoryStore
    agent_id: str
    user_id: str
    session: Session
    learn_after: float | None

    async def record(self) -> None:
        """Record what is new. A failure is logged: the next call makes up for it."""
        await result_or_none("recording messages", self._record())

    async def erase(self) -> Receipt | None:
        """Erase the conversation, its session and what was learned from it."""
        return await self.memory.erase_conversation(self.session.session_id)

    async def _record(self) -> None:
        notes = require_ability(self.session, Noted)
        note = await notes.get_note(_NOTE)
        recorded = 0 if note is None else int(note.data["position"])
        positioned = require_ability(self.session, Positioned)
        rows = await positioned.read_after(max(0, recorded - 1))
        is_rewritten = recorded > 0 and (not rows or rows[0].position != recorded)
        if is_rewritten:
            rows = await positioned.read_after(0)
        said = {row.position: each for row in rows if (each := self._message(row)) is not None}
        new = [each for position, each in said.items() if is_rewritten or position > recorded]
        if is_rewritten:
            new = await self._not_said(new)
        if new:
            await self._append(new)
        if new or is_rewritten:
            await notes.set_note(_NOTE, {"position": max(said, default=0)}, note.version if note else 0)

    def _message(self, row: PositionedItem) -> dict[str, Any] | None:
        role, text = role_of(row.item), text_of(row.item)
        if role not in _ROLES or not text.strip() or text == ERASED:
            return None
        message_id = str(uuid5(UUID(self.session.session_id), str(row.position)))
        return {"role": role, "content": text, "message_id": message_id}

    async def _append(self, messages: Sequence[dict[str, Any]]) -> None:
        """Append to the conversation. Open it if it does not exist, and leave out what it has already."""
        conversation_id = self.session.session_id
        try:
            await self.memory.append_messages(conversation_id, messages, learn_after=self.learn_after)
        except ConflictError:
            await self.memory.open_conversation(
                self.agent_id, self.user_id, session_id=conversation_id, conversation_id=conversation_id
            )
            known = {each.message_id for each in await self._recorded()}
            new = [each for each in messages if each["message_id"] not in known]
            if new:
                await self.memory.append_messages(conversation_id, new, learn_after=self.learn_after)

    async def _not_said(self, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The messages of a rewritten session that the conversation does not have, under any id."""
        said = Counter((each.role, each.content) for each in await self._recorded())
        new = []
        for each in messages:
            words = (each["role"], each["content"])
            if said[words]:
                said[words] -= 1
            else:
                new.append(each)
        return new

    async def _recorded(self) -> Sequence[Any]:
        conversation = await self.memory.get_conversation(self.session.session_id)
        return () if conversation is None else conversation.messages
