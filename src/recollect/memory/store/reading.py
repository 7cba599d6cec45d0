"""Reading conversations: one with all that was said, or many without."""

import json
from collections.abc import Sequence
from typing import Any

from ...sessions.settings import check_limit
from ...sessions.sql.columns import check_id, time_from_column
from ..conversation import Conversation, Message, summarize_words
from ..database import conversations, outlines
from ..database.conversations import ConversationRow
from ..times import tell_time
from .part import Part, check_owners

_LAST = 2**62  # no message has an index as high


class Reading(Part):
    """Conversations as they are stored."""

    async def get_conversation(self, conversation_id: str) -> Conversation | None:
        """A conversation with its messages; `None` if there is none."""
        row = await self._conversation(conversation_id)
        if row is None:
            return None
        said = await self._database.fetch(
            conversations.READ_MESSAGES, (conversation_id, 0, _LAST), conversations.messages_from
        )
        return row.with_messages(said)

    async def get_conversation_outline(self, conversation_id: str) -> dict[str, Any] | None:
        """What is told about a conversation without its messages; `None` if there is none."""
        row = await self._conversation(conversation_id)
        return None if row is None else (await self._outlines([row]))[0]

    async def list_conversations(
        self,
        agent_id: str | None = None,
        user_id: str | None = None,
        *,
        session_id: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[dict[str, Any]]:
        """A page of what is told about conversations without their messages, the newest first.

        Without `agent_id` and `user_id` they are those of the whole tenant. `before` is the `position` of the
        last on the page before, which may have been erased since.
        """
        edge, most = outlines.read_position(before), check_limit(limit)
        session = None if session_id is None else check_id("session_id", session_id)
        scope = self._tenant
        if check_owners(agent_id, user_id):
            memory = await self._owned(str(agent_id), str(user_id))
            if memory is None:
                return []
            scope = memory.memory_id
        is_memory = agent_id is not None
        sql, key = outlines.page_of(scope, is_memory=is_memory, session_id=session, has_edge=edge is not None)
        found = await self._database.fetch(sql, (*key, *(edge or ()), most), conversations.rows_from)
        return await self._outlines(found)

    async def list_messages(
        self, conversation_id: str, *, after: int | None = None, limit: int = 100
    ) -> list[Message] | None:
        """A page of a conversation's messages, from after a `message_index` on; `None` if there is none."""
        if after is not None and (isinstance(after, bool) or not isinstance(after, int)):
            raise TypeError(f"after must be a whole number, not {type(after).__name__}")
        if await self._conversation(conversation_id) is None:
            return None
        first = 0 if after is None else min(max(after, -1), _LAST) + 1
        page = (conversation_id, first, check_limit(limit))
        return await self._database.fetch(conversations.LIST_MESSAGES, page, conversations.messages_from)

    async def _conversation(self, conversation_id: str) -> ConversationRow | None:
        owned = (check_id("conversation_id", conversation_id), self._tenant)
        return await self._database.fetch(conversations.READ, owned, conversations.row_from)

    async def _outlines(self, rows: Sequence[ConversationRow]) -> list[dict[str, Any]]:
        """Conversations, told by their first words, which are read together."""
        if not rows:
            return []
        ids, queries = (json.dumps([row.conversation_id for row in rows]),), self._database.outlines
        counts = await self._database.fetch(queries.counts, ids, outlines.counts_from)
        words = await self._database.fetch(queries.first_words, ids, outlines.words_from)
        return [
            _outline(row, counts.get(row.conversation_id, 0), words.get(row.conversation_id)) for row in rows
        ]


def _outline(row: ConversationRow, count: int, words: str | None) -> dict[str, Any]:
    told = row.with_messages(()).to_dict()
    del told["messages"]
    return {
        **told,
        "turn_count": count,
        "summary": summarize_words(count, words),
        "updated_at": tell_time(time_from_column(row.updated_at)),
        "closed_at": row.closed_at and tell_time(time_from_column(row.closed_at)),
        "position": outlines.tell_position(row),
    }
