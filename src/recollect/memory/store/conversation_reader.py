"""Reads conversations: one with its messages, or pages of conversations without them."""

import json
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

from ...errors import InvalidTypeError, InvalidValueError
from ...sessions.settings import check_limit
from ...sql.columns import check_id
from ...sql.scripts import Row
from ..conversation import Conversation, Message, summarize_words
from ..database import conversations, memories, pages
from ..database.access import MemoryDatabase
from ..database.conversations import ConversationRow
from ..database.corruption import Page, fill_page, page_from
from ..database.pages import Edge
from ..hits import ConversationsFound
from ..operations.conversations import GetConversation, GetConversationOutline
from ..operations.lists import FindConversations, ListConversations
from ..times import format_time
from .lookup import MemoryLookup

_LAST = 2**62  # higher than the index of any message
_LONGEST_WORDS = 1000


class ConversationReader:
    """Reads the conversations of one tenant."""

    def __init__(self, database: MemoryDatabase, lookup: MemoryLookup) -> None:
        self._database = database
        self._lookup = lookup
        self._tenant = lookup.tenant

    async def get_conversation(self, request: GetConversation) -> Conversation | None:
        """A conversation with its messages; `None` if it does not exist."""
        row = await self._conversation(request.conversation_id)
        if row is None:
            return None
        said = await self._database.fetch(
            conversations.READ_MESSAGES, (row.conversation_id, 0, _LAST), conversations.messages_from
        )
        return row.with_messages(said)

    async def get_conversation_outline(self, request: GetConversationOutline) -> dict[str, Any] | None:
        """A conversation without its messages; `None` if it does not exist."""
        row = await self._conversation(request.conversation_id)
        return None if row is None else (await self._outlines([row]))[0]

    async def list_conversations(self, request: ListConversations) -> list[dict[str, Any]]:
        """A page of conversations without their messages, the newest first."""
        edge, scope = pages.parse_position(request.before), self._tenant
        if request.agent_id is not None and request.user_id is not None:
            memory = await self._lookup.find(request.agent_id, request.user_id)
            if memory is None:
                return []
            scope = memory.memory_id
        is_memory = request.agent_id is not None

        decode = partial(page_from, conversations.rows_from, pages.edge_of)

        async def fetch(edge: Edge | None, limit: int) -> Page[ConversationRow, Edge | None]:
            sql, key = pages.page_of(
                scope, is_memory=is_memory, session_id=request.session_id, has_edge=edge is not None
            )
            return await self._database.fetch(sql, (*key, *(edge or ()), limit), decode)

        return await self._outlines(await fill_page(fetch, edge, request.limit))

    async def find_conversations(self, request: FindConversations) -> ConversationsFound:
        """A page of the conversations that contain some words, or belong to a user or an agent."""
        words, most = request.words, request.limit
        if words is not None and len(words) > _LONGEST_WORDS:
            raise InvalidValueError(f"words must be at most {_LONGEST_WORDS:,} characters")
        edge = pages.parse_position(request.before)
        scope, key = self._scope(request.agent_id, request.user_id)
        wanted = pages.ConversationSearch(
            scope, key, edge, request.agent_id, request.session_id, words, max(request.look_through, 1)
        )
        is_id = words is not None and _is_generated_id(words)
        named = await self._find_by_id(words, wanted) if words is not None and is_id else None
        if named is not None:
            return ConversationsFound(await self._outlines([named]) if edge is None else [], None)
        sql, parameters = pages.statement_for(self._database.dialect, wanted, most + 1)
        rows = await self._database.fetch(sql, parameters, list[Row])
        shown = rows[:most]
        if shown and len(rows) > most:
            position: str | None = pages.format_position(ConversationRow(*shown[-1]))
        else:
            position = await self._database.fetch(*pages.last_scanned(wanted), pages.position_from)
        return ConversationsFound(await self._outlines(conversations.rows_from(shown)), position)

    async def list_messages(
        self, conversation_id: str, *, after: int | None = None, around: str | None = None, limit: int = 100
    ) -> list[Message] | None:
        """A page of a conversation's messages after a `message_index`; `None` if there is no conversation.

        With `around`, the id of a message, the page is centred on that message. It is empty if the
        conversation has no such message.
        """
        if after is not None and (isinstance(after, bool) or not isinstance(after, int)):
            raise InvalidTypeError(f"after must be a whole number, not {type(after).__name__}")
        if await self._conversation(conversation_id) is None:
            return None
        most = check_limit(limit) or 0
        if around is not None:
            after = await self._index_before_page_around(conversation_id, around, most)
        first = 0 if after is None else min(max(after, -1), _LAST) + 1

        decode = partial(page_from, conversations.messages_from, conversations.index_after)

        async def fetch(first: int, limit: int) -> Page[Message, int]:
            page = (conversation_id, first, limit)
            return await self._database.fetch(conversations.LIST_MESSAGES, page, decode)

        return await fill_page(fetch, first, most)

    async def _index_before_page_around(self, conversation_id: str, message_id: str, limit: int) -> int:
        key = (conversation_id, json.dumps([check_id("around", message_id)]))
        found = await self._database.fetch(self._database.messages_by_id, key, conversations.messages_from)
        return found[0].message_index - (limit - 1) // 2 - 1 if found else _LAST

    def _scope(self, agent_id: str | None, user_id: str | None) -> tuple[pages.Scope, str]:
        """The scope of a search for conversations of an agent, a user, or both, and its key."""
        agent = None if agent_id is None else check_id("agent_id", agent_id)
        user = None if user_id is None else check_id("user_id", user_id)
        if user is None:
            return "tenant", self._tenant
        if agent is None:
            return "user", memories.user_key(self._tenant, user)
        return "owner", memories.owner_key(self._tenant, agent, user)

    async def _find_by_id(self, words: str, wanted: pages.ConversationSearch) -> ConversationRow | None:
        """The conversation whose id is `words`, if it matches the other conditions."""
        row = await self._conversation(check_id("words", words))
        if row is None:
            return None
        owned = self._scope(
            row.agent_id if wanted.scope == "owner" else None,
            row.user_id if wanted.scope != "tenant" else None,
        )
        fits = owned == (wanted.scope, wanted.key)
        fits &= wanted.agent_id in (None, row.agent_id) and wanted.session_id in (None, row.session_id)
        return row if fits else None

    async def _conversation(self, conversation_id: str) -> ConversationRow | None:
        owned = (check_id("conversation_id", conversation_id), self._tenant)
        return await self._database.fetch(conversations.READ, owned, conversations.row_from)

    async def _outlines(self, rows: Sequence[ConversationRow]) -> list[dict[str, Any]]:
        """The outlines of conversations. Message counts and first words are read in one query for all."""
        if not rows:
            return []
        counts, words = await self._database.fetch(
            self._database.outlines.counts_and_first_words,
            (json.dumps([row.conversation_id for row in rows]),),
            pages.counts_and_words_from,
        )
        return [
            _outline(row, counts.get(row.conversation_id, 0), words.get(row.conversation_id)) for row in rows
        ]


def _outline(row: ConversationRow, count: int, words: str | None) -> dict[str, Any]:
    fields = row.with_messages(()).to_dict()
    del fields["messages"], fields["conversation_data"]
    return {
        **fields,
        "turn_count": count,
        "summary": summarize_words(count, words),
        "updated_at": format_time(row.changed),
        "closed_at": row.closed and format_time(row.closed),
        "position": pages.format_position(row),
    }


def _is_generated_id(words: str) -> bool:
    """Whether the words are an id as the store generates them. Any other id may be a word to search."""
    try:
        return str(uuid.UUID(words)) == words
    except ValueError:
        return False
