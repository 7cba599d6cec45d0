"""Recording conversations, and reading them again."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from ...errors import ConflictError
from ...sessions.settings import check_limit
from ...sessions.sql.columns import check_id
from ...sessions.sql.scripts import Script, Statement
from ..conversation import Conversation, Message, read_messages, summarize
from ..database import conversations, memories, runs
from ..database.access import MemoryDatabase, column_now
from ..database.memories import MemoryRow
from ..pipeline.spans import spans_of
from ..times import now
from .part import Part

_LAST = 2**62  # no message has an index as high
_END = "\uffff"  # after every time, compared as text


class Recording(Part):
    """Conversations: what was said is stored first, and learned from afterwards."""

    async def record_conversation(
        self,
        agent_id: str = "",
        user_id: str = "",
        messages: Sequence[Message | Mapping[str, Any]] = (),
        *,
        session_id: str | None = None,
        conversation_id: str | None = None,
        memory_id: str | None = None,
        created_at: datetime | str | None = None,
    ) -> Conversation:
        """Store a conversation. When this returns it is safe, and a run that learns from it is due.

        The same conversation under the same id a second time changes nothing; another one under an id that
        is taken is a `ConflictError`.
        """
        conversation = Conversation(
            agent_id, user_id, messages, session_id, conversation_id, created_at, memory_id
        )
        if not conversation.messages:
            raise ValueError("messages must not be empty")
        record = partial(_record, self._database, self._tenant, conversation, column_now())
        conversation.memory_id, is_new = await self._database.write(record)
        self._on_work()
        stored = None if is_new else await self.get_conversation(conversation.conversation_id)
        return stored or conversation

    async def append_messages(
        self, conversation_id: str, messages: Sequence[Message | Mapping[str, Any]]
    ) -> list[Message]:
        """Go on with a conversation. A further run takes the new messages alone.

        The same messages under the same ids a second time change nothing; others under ids that are taken
        are a `ConflictError`.
        """
        check_id("conversation_id", conversation_id)
        read = read_messages(messages, now())
        if not read:
            raise ValueError("messages must not be empty")
        append = partial(_append, self._database, self._tenant, conversation_id, read, column_now())
        placed = await self._database.write(append)
        self._on_work()
        return placed

    async def get_conversation(self, conversation_id: str) -> Conversation | None:
        """A conversation with its messages; `None` if there is none."""
        check_id("conversation_id", conversation_id)
        owned = (conversation_id, self._tenant)
        row = await self._database.fetch(conversations.READ, owned, conversations.row_from)
        if row is None:
            return None
        said = await self._database.fetch(
            conversations.READ_MESSAGES, (conversation_id, 0, _LAST), conversations.messages_from
        )
        return row.with_messages(said)

    async def list_conversations(
        self, agent_id: str, user_id: str, *, before: str | None = None, limit: int = 50
    ) -> list[dict[str, Any]]:
        """A page of what is told about conversations without their messages, the newest first.

        `before` is the `conversation_id` of the last on the page before.
        """
        memory = await self._owned(check_id("agent_id", agent_id), check_id("user_id", user_id))
        if memory is None:
            return []
        edge = await self._edge(before)
        found = await self._database.fetch(
            conversations.LIST, (memory.memory_id, *edge, check_limit(limit)), conversations.rows_from
        )
        return [await self._outline(row) for row in found]

    async def _edge(self, before: str | None) -> tuple[str, str]:
        if before is None:
            return (_END, _END)
        owned = (check_id("before", before), self._tenant)
        row = await self._database.fetch(conversations.READ, owned, conversations.row_from)
        if row is None:
            raise ValueError("before must be the id of a conversation that is there")
        return (row.created_at, row.conversation_id)

    async def _outline(self, row: conversations.ConversationRow) -> dict[str, Any]:
        """A conversation, told by its first words."""
        first = await self._database.fetch(
            conversations.FIRST_USER_MESSAGE, (row.conversation_id,), conversations.messages_from
        )
        count = await self._database.fetch(conversations.COUNT_MESSAGES, (row.conversation_id,), list)
        told = row.with_messages(()).to_dict()
        del told["messages"]
        return {**told, "turn_count": count[0][0], "summary": summarize(count[0][0], first)}


# --- transactions ---


def _record(
    database: MemoryDatabase, tenant: str, conversation: Conversation, now: str
) -> Script[tuple[str, bool]]:
    """Returns the memory's id, and whether the conversation was not there before."""
    memory = yield from _memory_of(database, tenant, conversation, now)
    yield from runs.hold_queue(database.queue, tenant, memory)
    is_new = yield from conversations.add(tenant, conversation, memory, now)
    if is_new:
        spans = spans_of(conversation.messages)
        yield from runs.enqueue(database.queue, tenant, memory, conversation.conversation_id, spans, now)
    return memory, is_new


def _memory_of(database: MemoryDatabase, tenant: str, conversation: Conversation, now: str) -> Script[str]:
    wanted = conversation.memory_id
    mine = memories.owner_key(tenant, conversation.agent_id, conversation.user_id)
    if wanted is not None:
        taken = yield Statement(memories.READ_OWNER, (wanted,))
        if taken and taken[0][0] != mine:
            raise ConflictError("memory_id is not that of this agent and user")
    yield Statement(database.removal.hold_owned, (mine,))
    made = MemoryRow.new(tenant, conversation.agent_id, conversation.user_id, now, wanted)
    memory = yield from memories.find_or_make(made, database.dialect.share)
    if wanted not in (None, memory):
        raise ConflictError("memory_id is not that of this agent and user")
    return memory


def _append(
    database: MemoryDatabase, tenant: str, conversation_id: str, messages: Sequence[Message], now: str
) -> Script[list[Message]]:
    rows = yield Statement(conversations.READ, (conversation_id, tenant))
    if not rows:
        raise ConflictError("there is no conversation with this conversation_id")
    memory = conversations.ConversationRow(*rows[0]).memory_id
    yield from runs.hold_queue(database.queue, tenant, memory)
    known = yield from conversations.already_there(database.messages_by_id, conversation_id, messages)
    if known:
        return known
    placed = yield from conversations.append(tenant, memory, conversation_id, messages, now)
    yield from runs.enqueue(database.queue, tenant, memory, conversation_id, spans_of(placed), now)
    return placed
