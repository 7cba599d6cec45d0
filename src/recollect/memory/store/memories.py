"""Reads and saves whole memories, and lists the memories and users of a tenant."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

from ...errors import ConflictError, InvalidTypeError
from ...sql.columns import time_from_column, time_to_column
from ...sql.scripts import Row, Script, Statement
from ..database import entries, memories
from ..database.access import MemoryDatabase, column_now
from ..database.entries import Changes, NewEntry
from ..database.memories import MemoryRow
from ..database.pages import entry_counts_from
from ..database.removal import delete_quoting_results, remove_with_precursors
from ..entry import CONTENT_TYPES, ContentType, Entry
from ..memory import Memory, MemoryOutline, UserOutline
from ..operations.lists import ListMemories, ListUsers
from ..operations.memories import GetMemory, GetMemoryById, GetMemoryOutline
from .entries import EntryRepository
from .lookup import NO_LIMIT, MemoryLookup, check_after


class MemoryRepository:
    """The memories of one tenant."""

    def __init__(self, database: MemoryDatabase, lookup: MemoryLookup, entries: EntryRepository) -> None:
        self._database = database
        self._lookup = lookup
        self._entries = entries
        self._tenant = lookup.tenant

    async def get_memory(self, request: GetMemory) -> Memory | None:
        """The memory of an agent and a user; `None` if they have none."""
        row = await self._lookup.find(request.agent_id, request.user_id)
        return None if row is None else await self._load(row, request.as_of)

    async def get_memory_by_id(self, request: GetMemoryById) -> Memory | None:
        """The memory with an id; `None` if it does not exist."""
        row = await self._lookup.find_by_id(request.memory_id)
        return None if row is None else await self._load(row, request.as_of)

    async def get_memory_outline(self, request: GetMemoryOutline) -> MemoryOutline | None:
        """A memory without its entries; `None` if it does not exist."""
        row = await self._lookup.find_by_id(request.memory_id)
        return None if row is None else (await self._outlines([row]))[0]

    async def list_memories(self, request: ListMemories) -> list[MemoryOutline]:
        """A page of memories without their entries."""
        agent_id, user_id = request.agent_id, request.user_id
        sql, key = memories.LIST, self._tenant
        if user_id is not None:
            sql, key = memories.LIST_OF_USER, memories.user_key(self._tenant, user_id)
        if agent_id is not None:
            sql, key = memories.LIST_OF_OWNER, memories.owner_key(self._tenant, agent_id, str(user_id))
        page = (key, check_after(request.after), request.limit)
        return await self._outlines(await self._database.fetch(sql, page, memories.rows_from))

    async def list_users(self, request: ListUsers) -> list[UserOutline]:
        """A page of the users who have a memory or a conversation."""
        page = (self._tenant, check_after(request.after), request.limit)
        return await self._database.fetch(memories.LIST_USERS, page, _users_from)

    async def save_memory(self, memory: Memory) -> Memory:
        """Store a memory that a person has edited, and return it as stored.

        Texts that are not stored yet are added. Stored texts that it lacks are deleted for good. A memory
        that has changed since it was read, which its `version` shows, is a `ConflictError`.
        """
        if not isinstance(memory, Memory):
            raise InvalidTypeError(f"memory must be a Memory, not {type(memory).__name__}")
        await self._database.write(partial(_save, self._database, self._tenant, memory, column_now()))
        saved = await self.get_memory(GetMemory(memory.agent_id, memory.user_id))
        assert saved is not None
        return saved

    async def _load(self, row: MemoryRow, as_of: datetime | str | None) -> Memory:
        memory = Memory(
            row.agent_id,
            row.user_id,
            memory_id=row.memory_id,
            created_at=row.started,
            updated_at=row.changed,
            version=row.version,
        )
        for _, entry in await self._entries.read_page(row.memory_id, as_of):
            getattr(memory, f"{entry.content_type}_content").append(entry.text)
        return memory

    async def _outlines(self, rows: Sequence[MemoryRow]) -> list[MemoryOutline]:
        if not rows:
            return []
        ids = (json.dumps([row.memory_id for row in rows]), column_now())
        query = self._database.outlines.entry_counts
        counts = await self._database.fetch(query, ids, entry_counts_from)
        return [_outline(row, counts.get(row.memory_id, {})) for row in rows]


def _outline(row: MemoryRow, counts: Mapping[str, int]) -> MemoryOutline:
    return MemoryOutline(
        row.memory_id,
        row.agent_id,
        row.user_id,
        row.started,
        row.changed,
        row.version,
        {kind: counts.get(kind, 0) for kind in CONTENT_TYPES},
    )


def _users_from(rows: list[Row]) -> list[UserOutline]:
    return [
        UserOutline(user_id, count, time_from_column(created_at), time_from_column(updated_at), position)
        for user_id, count, created_at, updated_at, position in rows
    ]


# --- transactions ---


def _save(database: MemoryDatabase, tenant: str, memory: Memory, now: str) -> Script[None]:
    made = MemoryRow.new(tenant, memory.agent_id, memory.user_id, now, memory.memory_id)
    made = made._replace(created_at=time_to_column(memory.created_at), version=memory.version)
    memory_id = yield from memories.find_or_make(made)
    rows = yield Statement(memories.LOCK, (memory_id, tenant))
    if (memory_id, MemoryRow(*rows[0]).version) != (memory.memory_id, memory.version):
        raise ConflictError("the memory has been changed since it was read, or has another memory_id")
    stored = yield Statement(entries.READ_LIVE, (memory_id, -1, now, NO_LIMIT))
    known = [entry for _, entry in entries.entries_from(stored)]
    missing, surplus = _differences(memory, known)
    texts = yield from remove_with_precursors(database.removal, memory_id, surplus)
    yield from delete_quoting_results(database.removal, memory_id, texts)
    changes = Changes(tuple(missing))
    if surplus and not changes:
        yield from memories.advance(memory_id, now, 0)
    yield from entries.change(tenant, memory_id, None, changes, now)


def _differences(memory: Memory, known: Sequence[Entry]) -> tuple[list[NewEntry], list[str]]:
    """The entries to add, and the ids of the stored entries that the memory lacks."""
    from ..guard.secrets import mask_secrets  # it compiles many patterns

    wanted: dict[tuple[ContentType, str], None] = {
        (kind, mask_secrets(text).text): None
        for kind in CONTENT_TYPES
        for text in getattr(memory, f"{kind}_content")
    }
    stored = {(entry.content_type, entry.text) for entry in known}
    missing = [NewEntry(kind, text) for kind, text in wanted if (kind, text) not in stored]
    surplus = [entry.content_id for entry in known if (entry.content_type, entry.text) not in wanted]
    return missing, surplus
