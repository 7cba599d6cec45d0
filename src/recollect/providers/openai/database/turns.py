"""The table of chat turns, in SQLite or PostgreSQL."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from ....memory.conversation import Message
from ....memory.database.conversations import MESSAGE_COLUMNS, READ_MESSAGES, messages_from
from ....memory.database.dialect import dialect_of
from ....memory.database.message_items import ItemLinks
from ....memory.database.schema import CONVERSATIONS, MESSAGES, MemorySchema
from ....memory.prompting import PageMark
from ....memory.run import Days, Spent, SpentBy, spent_from, sum_of_tokens
from ....sql.columns import json_from_column
from ....sql.database import SQLStore
from ....sql.scripts import Engine, LongQuery, Row, Script, Statement
from .record import TurnRecord, page_mark_from, records_from, to_columns
from .schema import CHAT_TURNS, RUNNING, ChatSchema
from .schema import MESSAGES as SESSION_ITEMS

_LAST = 2**62  # higher than the index of any message
_COLUMNS = ", ".join(CHAT_TURNS.column_names)
_SELECT = f"SELECT {_COLUMNS} FROM {CHAT_TURNS.name}"
_READ = f"{_SELECT} WHERE turn_id = ?1"
_LIST = f"{_SELECT} WHERE conversation_id = ?1 ORDER BY started_at, turn_id"
_NEWEST_DETAILS = (
    f"SELECT started_at, details FROM {CHAT_TURNS.name} WHERE conversation_id = ?1"
    " ORDER BY started_at DESC LIMIT 3"
)
_RUNNING = f"{_SELECT} WHERE conversation_id = ?1 AND {RUNNING} ORDER BY started_at, turn_id"
_OPEN = f"{_SELECT} WHERE turn_id = ?2 OR (conversation_id = ?1 AND {RUNNING})"
_ANSWERS = (
    f"SELECT assistant_message_id FROM {CHAT_TURNS.name}"
    " WHERE conversation_id = ?1 AND assistant_message_id IN {each}"
)
_COUNT_MESSAGES = (
    "SELECT count(*), count(CASE WHEN role = 'user' THEN 1 END)"
    f" FROM {MESSAGES.name} WHERE conversation_id = ?1"
)
_NEWEST_QUESTION = (
    f"SELECT {MESSAGE_COLUMNS} FROM {MESSAGES.name} WHERE conversation_id = ?1 AND role = 'user'"
    " ORDER BY message_index DESC LIMIT 1"
)
_CHANGED = (
    *("agent", "status", "error_code", "model", "finished_at"),
    *("requests", "input_tokens", "output_tokens", "details"),
)
# Only a running turn changes: the first recorded end is final.
_CHANGE = (
    f"UPDATE {CHAT_TURNS.name} SET {', '.join(f'{name} = ?{n}' for n, name in enumerate(_CHANGED, 2))}"
    " WHERE turn_id = ?1 AND status = 'running' RETURNING 1"
)
# A failed turn may begin again, in the same conversation.
_BEGIN = (
    f"INSERT INTO {CHAT_TURNS.name} ({_COLUMNS}) VALUES"
    f" ({', '.join(f'?{n + 1}' for n in range(len(CHAT_TURNS.columns)))}) ON CONFLICT (turn_id) DO UPDATE SET"
    f" {', '.join(f'{name} = excluded.{name}' for name in CHAT_TURNS.column_names if name != 'turn_id')}"
    f" WHERE {CHAT_TURNS.name}.status = 'failed'"
    f" AND {CHAT_TURNS.name}.conversation_id = excluded.conversation_id RETURNING 1"
)
_PLACE = (
    "SELECT tenant, provider_conversation_id, memory_strategy"
    f" FROM {CONVERSATIONS.name} WHERE conversation_id = ?1"
)
_SPENT = (
    "SELECT {day}, {name}, sum(turn.requests),"
    f" {sum_of_tokens('turn.input_tokens')}, {sum_of_tokens('turn.output_tokens')}"
    f" FROM {CHAT_TURNS.name} AS turn JOIN {CONVERSATIONS.name} AS owner"
    " ON owner.conversation_id = turn.conversation_id"
    " WHERE turn.tenant = ?1 AND turn.started_at >= ?2 AND turn.started_at < ?3"
    " AND turn.input_tokens + turn.output_tokens > 0 GROUP BY 1, 2 ORDER BY 1, 2 LIMIT ?4"
)
# A turn counts for the agent of its conversation, also if another agent answered after a handoff.
_SPENT_BY = {"model": "turn.model", "agent": "owner.agent_id"}

_PROVIDER_IDS = (
    f"SELECT provider_conversation_id FROM {CONVERSATIONS.name}"
    " WHERE conversation_id IN {each} AND provider_conversation_id IS NOT NULL"
)


class ConversationPlace(NamedTuple):
    """The tenant and the session of a conversation, and its own strategy."""

    tenant: str
    session_id: str
    """The id of the conversation at the provider if it has one there, else our own."""
    memory_strategy: dict[str, Any] | None


class ChatTurns(SQLStore):
    """Reads and writes the turns of chats."""

    schema = ChatSchema()

    async def change(self, record: TurnRecord) -> bool:
        """Update a running turn; `False` if it has ended already."""
        return await self._write(partial(change_turn, record, alone=True))

    async def get(self, turn_id: str) -> TurnRecord | None:
        """The turn of this id, or `None`."""
        found = await self._fetch(_READ, (turn_id,), records_from)
        return found[0] if found else None

    async def list_turns(self, conversation_id: str) -> list[TurnRecord]:
        """All turns of a conversation, in the order in which they began."""
        return await self._fetch(_LIST, (conversation_id,), records_from)

    async def page_mark(self, conversation_id: str) -> PageMark | None:
        """Which page about the user a conversation has; `None` if no turn of it had one lately."""
        return await self._fetch(_NEWEST_DETAILS, (conversation_id,), page_mark_from)

    async def list_running(self, conversation_id: str) -> list[TurnRecord]:
        """The turns of a conversation that are recorded as running."""
        return await self._fetch(_RUNNING, (conversation_id,), records_from)

    async def find_open(self, conversation_id: str, turn_id: str) -> list[TurnRecord]:
        """The turn of this id, if there is one, and the running turns of a conversation."""
        return await self._fetch(_OPEN, (conversation_id, turn_id), records_from)

    async def spent_by_day(self, tenant: str, days: Days, by: SpentBy, limit: int) -> list[Spent]:
        """The cost of turns, by the day they began and by the model or the agent of the conversation."""
        page = (tenant, *days.bounds, limit)
        day = dialect_of(self._database.dialect).day.format("turn.started_at")
        return await self._fetch(LongQuery(_SPENT.format(day=day, name=_SPENT_BY[by])), page, spent_from)

    async def answers_among(self, conversation_id: str, messages: Sequence[Message]) -> frozenset[str]:
        """The ids of those messages that are answers of turns; the runs have stored them in the session."""
        ids = [message.message_id for message in messages if message.role != "user"]
        if not ids:
            return frozenset()
        each = dialect_of(self._database.dialect).each.format("?2")
        return await self._fetch(_ANSWERS.format(each=each), (conversation_id, json.dumps(ids)), _ids_from)

    def item_links(self, conversation_id: str) -> ItemLinks:
        """Links session items to the messages of a conversation: by these, erasing finds the copies."""
        return ItemLinks(dialect_of(self._database.dialect), conversation_id, SESSION_ITEMS)

    async def list_messages(self, conversation_id: str, first: int) -> list[Message]:
        """The messages of a conversation from index `first` on."""
        key = (conversation_id, first, _LAST)
        return await self._fetch(READ_MESSAGES, key, messages_from)

    async def newest_question(self, conversation_id: str) -> Message | None:
        """The newest message of the user; `None` if there is none."""
        found = await self._fetch(_NEWEST_QUESTION, (conversation_id,), messages_from)
        return found[0] if found else None

    async def count_messages(self, conversation_id: str) -> tuple[int, int]:
        """The number of messages of a conversation, and how many of them are the user's."""
        return await self._fetch(_COUNT_MESSAGES, (conversation_id,), _counts_from)

    async def find_place(self, conversation_id: str) -> ConversationPlace | None:
        """The tenant and the session of a conversation; `None` if the conversation no longer exists."""
        return await self._fetch(_PLACE, (conversation_id,), partial(_place_from, conversation_id))

    async def provider_ids(self, conversation_ids: Sequence[str]) -> frozenset[str]:
        """The ids at the provider of those of these conversations that have one."""
        each = dialect_of(self._database.dialect).each.format("?1")
        return await self._fetch(_PROVIDER_IDS.format(each=each), (json.dumps(conversation_ids),), _ids_from)

    async def _prepared(self) -> Engine:
        # Turns refer to conversations, so the tables of memory come first.
        if not self._database.closed:
            await self._database.engine.prepare(MemorySchema())
        return await super()._prepared()


def begin_turn(record: TurnRecord) -> Script[bool]:
    """Record a turn that begins; `False` if a turn of its id exists that has not failed."""
    columns = to_columns(record)
    values = [columns[name] for name in CHAT_TURNS.column_names]
    return bool((yield Statement(_BEGIN, values)))


def change_turn(record: TurnRecord, alone: bool = False) -> Script[bool]:
    """Update a running turn; `False` if it has ended already."""
    columns = to_columns(record)
    values = (record.turn_id, *(columns[name] for name in _CHANGED))
    return bool((yield Statement(_CHANGE, values, alone=alone)))


def _counts_from(rows: Sequence[Row]) -> tuple[int, int]:
    return int(rows[0][0]), int(rows[0][1])


def _ids_from(rows: Sequence[Row]) -> frozenset[str]:
    return frozenset(row[0] for row in rows)


def _place_from(conversation_id: str, rows: Sequence[Row]) -> ConversationPlace | None:
    if not rows:
        return None
    tenant, remote_id, strategy = rows[0]
    return ConversationPlace(tenant, remote_id or conversation_id, json_from_column(strategy))
