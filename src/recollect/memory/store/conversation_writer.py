"""Recording conversations, and going on with them."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from ...errors import ConflictError, InvalidTypeError, InvalidValueError
from ...sql.columns import check_id
from ...sql.scripts import Script, Statement
from ..conversation import (
    UNCHANGED,
    Conversation,
    ConversationSettings,
    Message,
    Unchanged,
    injection_to_column,
    provider_id_to_column,
    read_messages,
    strategy_to_column,
)
from ..database import conversations, memories, quiet_period, removal, runs
from ..database.access import MemoryDatabase, column_now
from ..database.memories import MemoryRow
from ..database.quiet_period import Due
from ..pipeline.scheduler import close, make_runs, spans_of
from ..times import check_said, now
from .conversation_reader import Reading

_NO_CONVERSATION = "there is no conversation with this conversation_id"


class Recording(Reading):
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
        metadata: Mapping[str, Any] | None = None,
    ) -> Conversation:
        """Store a conversation. When this returns it is safe, and a run that learns from it is due.

        The same conversation under the same id a second time changes nothing; another one under an id that
        is taken is a `ConflictError`. Where agent and user have no memory yet, a `memory_id` names the memory
        that is made for them. Where they have one, any other id is a `ConflictError`, and so is the id of
        another's memory. A time more than 5 minutes ahead of the clock is a `ValueError`.
        """
        conversation = Conversation(
            agent_id,
            user_id,
            messages,
            session_id,
            conversation_id,
            created_at,
            memory_id,
            metadata=metadata,
        )
        if not conversation.messages:
            raise InvalidValueError("messages must not be empty")
        check_said("created_at", conversation.created_at)
        _check_messages(conversation.messages)
        record = partial(_record, self._database, self._tenant, conversation, column_now())
        conversation.memory_id, is_new = await self._database.write(record)
        self._on_work()
        stored = None if is_new else await self.get_conversation(conversation.conversation_id)
        return stored or conversation

    async def open_conversation(
        self,
        agent_id: str,
        user_id: str,
        *,
        session_id: str | None = None,
        conversation_id: str | None = None,
        memory_strategy: Mapping[str, Any] | None = None,
        memory_injection: bool | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Conversation:
        """Begin a conversation in which nothing has been said yet.

        One that this agent and user have under the same id is given as it is; one of others is a
        `ConflictError`.
        """
        made = Conversation(agent_id, user_id, (), session_id, conversation_id, metadata=metadata)
        settings = (strategy_to_column(memory_strategy), injection_to_column(memory_injection))
        await self._database.write(partial(_open, self._database, self._tenant, made, settings, column_now()))
        stored = await self.get_conversation(made.conversation_id)
        if stored is None:
            raise ConflictError("the conversation was erased as soon as it was opened")
        return stored

    async def append_messages(
        self,
        conversation_id: str,
        messages: Sequence[Message | Mapping[str, Any]],
        *,
        learn_after: float | None = None,
        even_if_closed: bool = False,
    ) -> list[Message]:
        """Go on with a conversation. A further run takes the messages that none has had.

        With `learn_after` that run is made when nothing has been added for so many seconds, a day at most, or
        when the conversation is closed. The same messages under the same ids a second time change nothing;
        others under ids that are taken are a `ConflictError`, and so is a conversation that is closed, unless
        `even_if_closed`: for an answer to what was said before.
        """
        check_id("conversation_id", conversation_id)
        read = read_messages(messages, now())
        if not read:
            raise InvalidValueError("messages must not be empty")
        _check_messages(read)
        seconds = None if learn_after is None else check_seconds("learn_after", learn_after)
        key = (conversation_id, self._tenant)
        append = partial(_append, self._database, key, read, seconds, column_now(), even_if_closed)
        placed = await self._database.write(append)
        self._on_work()
        return placed

    async def close_conversation(self, conversation_id: str) -> Conversation | None:
        """Have nothing added any more, and what is left learned at once; `None` if there is none.

        Closing twice is harmless.
        """
        key = (check_id("conversation_id", conversation_id), self._tenant)
        if not await self._database.write(partial(_close, self._database, key, column_now())):
            return None
        self._on_work()
        return await self.get_conversation(conversation_id)

    async def get_conversation_settings(self, conversation_id: str) -> ConversationSettings | None:
        """The settings of a conversation; `None` if there is none."""
        key = (check_id("conversation_id", conversation_id), self._tenant)
        return await self._database.fetch(conversations.READ_SETTINGS, key, conversations.settings_from)

    async def change_conversation_settings(
        self,
        conversation_id: str,
        *,
        memory_strategy: Mapping[str, Any] | Unchanged | None = UNCHANGED,
        memory_injection: bool | Unchanged | None = UNCHANGED,
        provider_conversation_id: str | Unchanged | None = UNCHANGED,
        version: int | None = None,
    ) -> ConversationSettings | None:
        """Change the settings that are given, where `None` clears one; `None` if there is no conversation.

        Where a `version` is given that is not theirs any more, this is a `ConflictError`.
        """
        check_id("conversation_id", conversation_id)
        changes: dict[str, str | None] = {}
        if memory_strategy is not UNCHANGED:
            changes["memory_strategy"] = strategy_to_column(memory_strategy)
        if memory_injection is not UNCHANGED:
            changes["memory_injection"] = injection_to_column(memory_injection)
        if provider_conversation_id is not UNCHANGED:
            changes["provider_conversation_id"] = provider_id_to_column(provider_conversation_id)
        lock = self._database.dialect.lock
        change = partial(conversations.change_settings, lock, self._tenant, conversation_id, changes, version)
        return await self._database.write(change)


def _check_messages(messages: Sequence[Message]) -> None:
    """Nothing can have been said in the future: such a message would win over all that is said later."""
    for message in messages:
        check_said(f"created_at of message {message.message_index}", message.created_at)


def check_seconds(name: str, given: object) -> float:
    """A number of seconds from 0 on."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidTypeError(f"{name} must be a number of seconds, not {type(given).__name__}")
    if not (math.isfinite(given) and given >= 0):
        raise InvalidValueError(f"{name} must be 0 or more seconds, and it is {given:g}")
    return float(given)


# --- transactions ---


def _record(
    database: MemoryDatabase, tenant: str, conversation: Conversation, now: str
) -> Script[tuple[str, bool]]:
    """Returns the memory's id, and whether the conversation was not there before."""
    memory = yield from _memory_of(database, tenant, conversation, now)
    yield from runs.lock_queue(database.queue, tenant, memory)
    is_new = yield from conversations.add(tenant, conversation, memory, now)
    if is_new:
        spans = spans_of(conversation.messages)
        yield from runs.enqueue(database.queue, tenant, memory, conversation.conversation_id, spans, now)
    return memory, is_new


def _memory_of(database: MemoryDatabase, tenant: str, conversation: Conversation, now: str) -> Script[str]:
    """The memory of the conversation's agent and user, made if there is none, under the id that is named.

    The error is the same for an id of another agent, user or tenant.
    """
    named = conversation.memory_id
    made = MemoryRow.new(tenant, conversation.agent_id, conversation.user_id, now, named)
    memory = yield from memories.find_to_record(made, database.find_to_record)
    if named not in (None, memory):
        raise ConflictError(memories.NOT_THEIRS)
    return memory


def _open(
    database: MemoryDatabase, tenant: str, made: Conversation, settings: conversations.Settings, now: str
) -> Script[None]:
    memory = yield from _memory_of(database, tenant, made, now)
    yield from conversations.open_empty(tenant, made, memory, now, settings)


def _append(
    database: MemoryDatabase,
    key: tuple[str, str],
    messages: Sequence[Message],
    learn_after: float | None,
    now: str,
    even_if_closed: bool,
) -> Script[list[Message]]:
    owner = yield from _owner(key)
    if owner is None:
        raise ConflictError(_NO_CONVERSATION)
    if learn_after is None and not (
        yield from removal.lock_queue(database.removal, database.queue.enqueue, owner.tenant, owner.memory_id)
    ):
        raise ConflictError(_NO_CONVERSATION)
    yield from quiet_period.lock_memory(owner)
    known = yield from conversations.find_existing(database.messages_by_id, owner.conversation_id, messages)
    if known:
        return known
    placed, waiting = yield from quiet_period.append(
        database.quiet, owner, messages, now, learn_after, even_if_closed
    )
    if learn_after is None:
        first = placed[0].message_index if waiting is None else waiting
        yield from make_runs(database, owner, first, now)
    return placed


def _close(database: MemoryDatabase, key: tuple[str, str], now: str) -> Script[bool]:
    owner = yield from _owner(key)
    return owner is not None and (yield from close(database, owner, now))


def _owner(key: tuple[str, str]) -> Script[Due | None]:
    """A conversation of a tenant, with whose memory it is of."""
    rows = yield Statement(quiet_period.OWNER, key)
    return Due(*rows[0]) if rows else None
