"""Records conversations, appends to them, closes them and changes their settings.

Messages are stored first and learned from afterwards. A conversation and the run that learns from it are
written in one transaction, so a recorded conversation always has its run. Recording is idempotent: the ids
of conversations and messages are the idempotency keys.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from ...errors import ConflictError, InvalidValueError, StatementRefusedError
from ...sql.columns import check_id
from ...sql.scripts import MakeScript, Script, Statement
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
from ..database import conversations, memories, quiet_period, recording, removal
from ..database.access import MemoryDatabase, column_now
from ..database.memories import MemoryRow
from ..database.quiet_period import Due
from ..operations.conversations import GetConversation
from ..pipeline.scheduler import close, create_runs, spans_of
from ..times import check_said, now
from .conversation_reader import ConversationReader
from .lookup import check_seconds

_NO_CONVERSATION = "there is no conversation with this conversation_id"


class ConversationWriter:
    """Writes the conversations of one tenant. `on_work` is called when a run may have become due."""

    def __init__(
        self,
        database: MemoryDatabase,
        tenant: str,
        reader: ConversationReader,
        on_work: Callable[[], None],
        *,
        mask_secrets_in_messages: bool = False,
    ) -> None:
        self._database = database
        self._masks_secrets = mask_secrets_in_messages
        self._tenant = tenant
        self._reader = reader
        self._on_work = on_work

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
        tags: Sequence[str] | None = None,
    ) -> Conversation:
        """Store a conversation. When this returns, it is durable, and a run that learns from it is due.

        Recording the same conversation again under the same `conversation_id` changes nothing. A different
        conversation under an id in use is a `ConflictError`. If the agent and user have no memory yet,
        `memory_id` is the id of the memory that is created for them. If they have one, any other id is a
        `ConflictError`, and so is the id of a memory that belongs to someone else. A time more than 5 minutes
        ahead of the clock is a `ValueError`.
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
            tags=tags,
        )
        if not conversation.messages:
            raise InvalidValueError("messages must not be empty")
        check_said("created_at", conversation.created_at)
        _check_messages(conversation.messages)
        conversation.messages = self._to_store(conversation.messages)
        conversation.memory_id, is_new = await self._record(conversation, column_now())
        self._on_work()
        read = GetConversation(conversation.conversation_id)
        stored = None if is_new else await self._reader.get_conversation(read)
        return stored or conversation

    async def _record(self, conversation: Conversation, at: str) -> tuple[str, bool]:
        """Store a conversation; returns the id of its memory, and whether it is new."""
        if self._database.recording.adds_at_once(conversation):
            memory, spans = _memory_row(self._tenant, conversation, at), spans_of(conversation.messages)
            add = partial(recording.add_at_once, self._database.recording, memory, conversation, spans, at)
            with suppress(StatementRefusedError):  # another transaction changes the memory at once
                if (memory_id := await self._database.write(add)) is not None:
                    return memory_id, True
        return await self._database.write(partial(_record, self._database, self._tenant, conversation, at))

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
        tags: Sequence[str] | None = None,
    ) -> Conversation:
        """Open a conversation that has no messages yet.

        If this agent and user already have a conversation under this id, it is returned unchanged. A
        conversation of someone else under this id is a `ConflictError`.
        """
        made = Conversation(agent_id, user_id, (), session_id, conversation_id, metadata=metadata, tags=tags)
        settings = (strategy_to_column(memory_strategy), injection_to_column(memory_injection))
        await self._database.write(partial(_open, self._database, self._tenant, made, settings, column_now()))
        stored = await self._reader.get_conversation(GetConversation(made.conversation_id))
        if stored is None:
            raise ConflictError("the conversation was erased while it was being opened")
        return stored

    async def append_messages(
        self,
        conversation_id: str,
        messages: Sequence[Message | Mapping[str, Any]],
        *,
        learn_after: float | None = None,
        even_if_closed: bool = False,
    ) -> list[Message]:
        """Append messages to a conversation. A further run learns from the messages that no run has read.

        With `learn_after`, that run is created after so many seconds without a new message (a day at most),
        or when the conversation is closed; with `math.inf`, only when it is closed, or when later messages
        are learned from. Appending the same messages again under the same ids changes nothing. Different
        messages under ids in use are a `ConflictError`. So is a closed conversation, unless `even_if_closed`
        is set, which allows the reply to a message from before the close.
        """
        append = self.append_script(
            conversation_id, messages, learn_after=learn_after, even_if_closed=even_if_closed
        )
        placed = await self._database.write(append)
        self.announce_work()
        return placed

    def append_script(
        self,
        conversation_id: str,
        messages: Sequence[Message | Mapping[str, Any]],
        *,
        learn_after: float | None = None,
        even_if_closed: bool = False,
    ) -> MakeScript[list[Message]]:
        """As `append_messages`, as a step of a larger transaction. Call `announce_work` after the commit."""
        check_id("conversation_id", conversation_id)
        read = read_messages(messages, now())
        if not read:
            raise InvalidValueError("messages must not be empty")
        _check_messages(read)
        read = self._to_store(read)
        waits = learn_after is not None and learn_after != math.inf
        seconds = check_seconds("learn_after", learn_after) if waits else learn_after
        key = (conversation_id, self._tenant)
        return partial(_append, self._database, key, read, seconds, column_now(), even_if_closed)

    def announce_work(self) -> None:
        """Wake the workers."""
        self._on_work()

    def _to_store(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The messages as they are stored: with their secrets masked, if the store is set to do so."""
        if not self._masks_secrets:
            return messages
        from ..guard.secrets import mask_secrets  # it compiles many patterns

        return tuple(replace(each, content=mask_secrets(each.content).text) for each in messages)

    async def close_conversation(self, conversation_id: str) -> Conversation | None:
        """Close a conversation to new messages and learn from the rest at once; `None` if it does not exist.

        Closing it again has no effect.
        """
        key = (check_id("conversation_id", conversation_id), self._tenant)
        if not await self._database.write(partial(_close, self._database, key, column_now())):
            return None
        self._on_work()
        return await self._reader.get_conversation(GetConversation(conversation_id))

    async def get_conversation_settings(self, conversation_id: str) -> ConversationSettings | None:
        """The settings of a conversation; `None` if it does not exist."""
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
        """Change the given settings and return all of them; `None` if the conversation does not exist.

        `None` clears a setting. A `version` that is no longer current is a `ConflictError`.
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
    """Reject messages from the future: such a message would win over everything said later."""
    for message in messages:
        check_said(f"created_at of message {message.message_index}", message.created_at)


# --- transactions ---


def _record(
    database: MemoryDatabase, tenant: str, conversation: Conversation, now: str
) -> Script[tuple[str, bool]]:
    """The id of the memory, and whether the conversation is new."""
    made, queries = _memory_row(tenant, conversation, now), database.recording
    memory = _require_its_memory(conversation, (yield from memories.find_to_record(made, queries.find)))
    spans = spans_of(conversation.messages)
    return memory, (yield from recording.add(queries, tenant, conversation, memory, spans, now))


def _memory_row(tenant: str, conversation: Conversation, now: str) -> MemoryRow:
    """The row of the memory of the conversation's agent and user, if they have none."""
    return MemoryRow.new(tenant, conversation.agent_id, conversation.user_id, now, conversation.memory_id)


def _require_its_memory(conversation: Conversation, memory: str) -> str:
    """The id of the memory, unless the conversation names another.

    The error for a `memory_id` of another agent, user or tenant is the same, so it reveals nothing of them.
    """
    if conversation.memory_id not in (None, memory):
        raise ConflictError(memories.NOT_THEIRS)
    return memory


def _open(
    database: MemoryDatabase, tenant: str, made: Conversation, settings: conversations.Settings, now: str
) -> Script[None]:
    row = _memory_row(tenant, made, now)
    memory = _require_its_memory(made, (yield from memories.find_to_record(row, database.recording.find)))
    yield from conversations.open_empty(tenant, made, memory, now, settings)


def _append(
    database: MemoryDatabase,
    key: tuple[str, str],
    messages: Sequence[Message],
    learn_after: float | None,
    now: str,
    even_if_closed: bool,
) -> Script[list[Message]]:
    """Append messages. Lock order: the queue row, then the memory, then the conversation.

    A worker that ends a run takes the locks in the same order, so the two cannot wait for each other. With
    `learn_after` no run is created here, and the queue row is not needed.
    """
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
        yield from create_runs(database, owner, first, now)
    return placed


def _close(database: MemoryDatabase, key: tuple[str, str], now: str) -> Script[bool]:
    owner = yield from _owner(key)
    return owner is not None and (yield from close(database, owner, now))


def _owner(key: tuple[str, str]) -> Script[Due | None]:
    """A conversation of a tenant with the id of its memory; `None` if the tenant has no such conversation."""
    rows = yield Statement(quiet_period.OWNER, key)
    return Due(*rows[0]) if rows else None
