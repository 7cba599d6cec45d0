"""The turns of chats, in SQLite or PostgreSQL."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from ....memory.conversation import Message
from ....memory.database.conversations import READ_MESSAGES, messages_from
from ....memory.database.dialect import dialect_of
from ....memory.database.message_items import ItemLinks
from ....memory.database.schema import CONVERSATIONS, MESSAGES, MemorySchema
from ....memory.run import Days, Spent, SpentBy, spent_from, sum_of_tokens
from ....sql.columns import json_from_column
from ....sql.database import SQLStore
from ....sql.scripts import Engine, LongQuery, MakeScript, Row, Script, Statement
from .record import TurnRecord, records_from, to_columns
from .schema import CHAT_TURNS, RUNNING, ChatSchema
from .schema import MESSAGES as SESSION_ITEMS

_LAST = 2**62  # no message has an index as high
_COLUMNS = ", ".join(CHAT_TURNS.column_names)
_SELECT = f"SELECT {_COLUMNS} FROM {CHAT_TURNS.name}"
_READ = f"{_SELECT} WHERE turn_id = ?1"
_LIST = f"{_SELECT} WHERE conversation_id = ?1 ORDER BY started_at, turn_id"
_RUNNING = f"{_SELECT} WHERE conversation_id = ?1 AND {RUNNING} ORDER BY started_at, turn_id"
_ANSWERS = (
    f"SELECT assistant_message_id FROM {CHAT_TURNS.name}"
    " WHERE conversation_id = ?1 AND assistant_message_id IN {each}"
)
_ANSWER = f"SELECT message_index FROM {MESSAGES.name} WHERE conversation_id = ?1 AND message_id = ?2"
_SAID = (
    "SELECT count(*), count(CASE WHEN role = 'user' THEN 1 END)"
    f" FROM {MESSAGES.name} WHERE conversation_id = ?1"
)
_IS_RUNNING = f"SELECT 1 FROM {CHAT_TURNS.name} WHERE turn_id = ?1 AND {RUNNING}"
_CHANGED = (
    *("agent", "status", "error_code", "model", "finished_at"),
    *("requests", "input_tokens", "output_tokens", "details"),
)
# A turn that has ended stays as it ended, whoever comes late.
_CHANGE = (
    f"UPDATE {CHAT_TURNS.name} SET {', '.join(f'{name} = ?{n}' for n, name in enumerate(_CHANGED, 2))}"
    " WHERE turn_id = ?1 AND status = 'running' RETURNING 1"
)
# One that failed may be begun again, in the same conversation.
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
    f" FROM {CHAT_TURNS.name} AS turn JOIN {CONVERSATIONS.name} AS held"
    " ON held.conversation_id = turn.conversation_id"
    " WHERE turn.tenant = ?1 AND turn.started_at >= ?2 AND turn.started_at < ?3"
    " AND turn.input_tokens + turn.output_tokens > 0 GROUP BY 1, 2 ORDER BY 1, 2 LIMIT ?4"
)
# Whoever answered, a turn is its conversation's agent's, as is what is learned from it.
_SPENT_BY = {"model": "turn.model", "agent": "held.agent_id"}

_PROVIDED = (
    f"SELECT provider_conversation_id FROM {CONVERSATIONS.name}"
    " WHERE conversation_id IN {each} AND provider_conversation_id IS NOT NULL"
)


class Place(NamedTuple):
    """Where a conversation belongs."""

    tenant: str
    session_id: str
    """The provider's id for the conversation if there is one, else our own."""
    memory_strategy: dict[str, Any] | None


class ChatTurns(SQLStore):
    """Records the turns of chats."""

    schema = ChatSchema()

    async def begin(self, record: TurnRecord) -> bool:
        """Record a turn that begins; `False` if there is one of its id that has not failed."""
        return await self._write(partial(_begin, record))

    async def change(self, record: TurnRecord) -> bool:
        """Record how a turn goes on or has ended; `False` if it had ended before."""
        return await self._write(self.changing(record))

    def changing(self, record: TurnRecord) -> MakeScript[bool]:
        """The same, for a transaction in which more is done."""
        return partial(_change, record)

    def is_running(self, turn_id: str) -> MakeScript[bool]:
        """Whether a turn goes on, within a transaction."""
        return partial(_is_running, turn_id)

    async def get(self, turn_id: str) -> TurnRecord | None:
        """The turn of an id."""
        found = await self._fetch(_READ, (turn_id,), records_from)
        return found[0] if found else None

    async def of_conversation(self, conversation_id: str) -> list[TurnRecord]:
        """All turns of a conversation, in the order in which they began."""
        return await self._fetch(_LIST, (conversation_id,), records_from)

    async def running_in(self, conversation_id: str) -> list[TurnRecord]:
        """The turns of a conversation that have not ended, as far as is recorded."""
        return await self._fetch(_RUNNING, (conversation_id,), records_from)

    async def spent_by_day(self, tenant: str, days: Days, by: SpentBy, limit: int) -> list[Spent]:
        """What turns have cost, by the day they began and by the model or the conversation's agent."""
        page = (tenant, *days.bounds, limit)
        day = dialect_of(self._database.dialect).day.format("turn.started_at")
        return await self._fetch(LongQuery(_SPENT.format(day=day, name=_SPENT_BY[by])), page, spent_from)

    async def answer_index(self, record: TurnRecord) -> int | None:
        """Where the answer of a turn stands in the conversation; `None` where there is none."""
        key = (record.conversation_id, record.assistant_message_id)
        found = await self._fetch(_ANSWER, key, list[Row])
        return int(found[0][0]) if found else None

    async def answers_among(self, conversation_id: str, messages: Sequence[Message]) -> frozenset[str]:
        """The ids of those messages that are answers of turns: their runs have put them into the session."""
        ids = [message.message_id for message in messages if message.role == "assistant"]
        if not ids:
            return frozenset()
        each = dialect_of(self._database.dialect).each.format("?2")
        return await self._fetch(_ANSWERS.format(each=each), (conversation_id, json.dumps(ids)), _ids_from)

    def item_links(self, conversation_id: str) -> ItemLinks:
        """Links session items to the messages of a conversation: by these, erasing finds the copies."""
        return ItemLinks(dialect_of(self._database.dialect), conversation_id, SESSION_ITEMS)

    async def said_since(self, conversation_id: str, first: int) -> list[Message]:
        """The messages of a conversation from an index on."""
        key = (conversation_id, first, _LAST)
        return await self._fetch(READ_MESSAGES, key, messages_from)

    async def count_said(self, conversation_id: str) -> tuple[int, int]:
        """How many messages a conversation has, and how many of them are the user's."""
        return await self._fetch(_SAID, (conversation_id,), _counts_from)

    async def place_of(self, conversation_id: str) -> Place | None:
        """Where a conversation belongs; `None` if it is gone."""
        return await self._fetch(_PLACE, (conversation_id,), partial(_place_from, conversation_id))

    async def provider_ids(self, conversation_ids: Sequence[str]) -> frozenset[str]:
        """The ids that the provider has given to some of these conversations."""
        each = dialect_of(self._database.dialect).each.format("?1")
        return await self._fetch(_PROVIDED.format(each=each), (json.dumps(conversation_ids),), _ids_from)

    async def _prepared(self) -> Engine:
        # Turns refer to conversations, whose tables must be there first.
        if not self._database.closed:
            await self._database.engine.prepare(MemorySchema())
        return await super()._prepared()


def _begin(record: TurnRecord) -> Script[bool]:
    columns = to_columns(record)
    return bool((yield Statement(_BEGIN, [columns[name] for name in CHAT_TURNS.column_names])))


def _change(record: TurnRecord) -> Script[bool]:
    columns = to_columns(record)
    values = (record.turn_id, *(columns[name] for name in _CHANGED))
    return bool((yield Statement(_CHANGE, values)))


def _is_running(turn_id: str) -> Script[bool]:
    return bool((yield Statement(_IS_RUNNING, (turn_id,))))


def _counts_from(rows: Sequence[Row]) -> tuple[int, int]:
    return int(rows[0][0]), int(rows[0][1])


def _ids_from(rows: Sequence[Row]) -> frozenset[str]:
    return frozenset(row[0] for row in rows)


def _place_from(conversation_id: str, rows: Sequence[Row]) -> Place | None:
    if not rows:
        return None
    tenant, providers_id, strategy = rows[0]
    return Place(tenant, providers_id or conversation_id, json_from_column(strategy))
