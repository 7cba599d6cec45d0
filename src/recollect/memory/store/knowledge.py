"""What is known: memories, and their entries one by one."""

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from ...errors import ConflictError, InvalidTypeError, InvalidValueError
from ...sessions.settings import check_limit
from ...sql.columns import check_count, check_id, time_from_column, time_to_column
from ...sql.scripts import Row, Script, Statement
from ..conversation import check_key
from ..database import entries, memories
from ..database.access import MemoryDatabase, column_now
from ..database.corruption import Page, fill_page, page_from
from ..database.entries import Changes, NewEntry
from ..database.memories import MemoryRow
from ..database.pages import entry_counts_from
from ..database.removal import delete_quoting_results, remove_with_precursors
from ..entry import CONTENT_TYPES, EDITED, EDITED_BY, ContentType, Entry, by_succession, check_type
from ..memory import Memory, MemoryOutline, UserOutline
from ..metadata import read_metadata
from ..texts.similarity import say_the_same
from ..times import read_date, read_time
from .lookup import Part, check_after, check_owners

_EVERYTHING = 2**62  # rows: no limit at all
_NO_TIME = ""  # compared with no time at all


class _Edit(NamedTuple):
    """A correction of an entry by a person."""

    text: str
    edited_by: str | None
    metadata: Mapping[str, Any] | None
    """`None` keeps the metadata of the old entry."""


class Knowledge(Part):
    """Memories and their entries."""

    async def get_memory(
        self, agent_id: str, user_id: str, *, as_of: datetime | str | None = None
    ) -> Memory | None:
        """What an agent knows about a user, now or as it was known at a time; `None` if there is nothing."""
        row = await self._owned(check_id("agent_id", agent_id), check_id("user_id", user_id))
        return None if row is None else await self._told(row, as_of)

    async def get_memory_by_id(self, memory_id: str, *, as_of: datetime | str | None = None) -> Memory | None:
        """The memory with this id; `None` if there is none."""
        row = await self._by_id(memory_id)
        return None if row is None else await self._told(row, as_of)

    async def get_memory_outline(self, memory_id: str) -> MemoryOutline | None:
        """A memory without what it holds, as one of `list_memories`; `None` if there is none."""
        row = await self._by_id(memory_id)
        return None if row is None else (await self._memory_outlines([row]))[0]

    async def list_memories(
        self,
        agent_id: str | None = None,
        user_id: str | None = None,
        *,
        after: str | None = None,
        limit: int = 50,
    ) -> list[MemoryOutline]:
        """A page of memories without what they hold, in the order of their ids.

        They are those of the tenant, of a user, or of an agent and a user. `after` is the last id on the page
        before.
        """
        sql, key = memories.LIST, self._tenant
        if user_id is not None:
            sql, key = memories.LIST_OF_USER, memories.user_key(self._tenant, check_id("user_id", user_id))
        if agent_id is not None:
            check_owners(agent_id, user_id)
            sql, key = memories.LIST_OF_OWNER, memories.owner_key(self._tenant, agent_id, str(user_id))
        page = (key, check_after(after), check_limit(limit))
        return await self._memory_outlines(await self._database.fetch(sql, page, memories.rows_from))

    async def list_users(self, *, after: str | None = None, limit: int = 50) -> list[UserOutline]:
        """A page of the users of whom a memory or a conversation is stored, each once.

        The order stays the same, and is not that of their ids. `after` is the `position` of the last user on
        the page before, who may have been erased since.
        """
        page = (self._tenant, check_after(after), check_limit(limit))
        return await self._database.fetch(memories.LIST_USERS, page, _users_from)

    async def save_memory(self, memory: Memory) -> Memory:
        """Store a memory as a person has written it, and return it as it is now.

        What it holds more than is stored is added, and what it lacks is deleted for good. Where another has
        changed the memory since it was read, by its `version`, this is a `ConflictError`.
        """
        if not isinstance(memory, Memory):
            raise InvalidTypeError(f"memory must be a Memory, not {type(memory).__name__}")
        await self._database.write(partial(_save, self._database, self._tenant, memory, column_now()))
        saved = await self.get_memory(memory.agent_id, memory.user_id)
        assert saved is not None
        return saved

    async def list_entries(
        self,
        agent_id: str,
        user_id: str,
        *,
        content_type: ContentType | None = None,
        as_of: datetime | str | None = None,
        include_retired: bool = False,
        limit: int | None = None,
    ) -> list[Entry]:
        """Entries with their evidence, in the order in which they were learned."""
        if content_type is not None:
            check_type(content_type)
        row = await self._owned(check_id("agent_id", agent_id), check_id("user_id", user_id))
        if row is None:
            return []
        most = _EVERYTHING if limit is None else check_limit(limit)
        found = await self._entries(row.memory_id, as_of, include_retired, (-1, most, content_type))
        return await self._database.with_evidence([entry for _, entry in found])

    async def list_entries_of(
        self,
        memory_id: str,
        *,
        content_type: ContentType | None = None,
        as_of: datetime | str | None = None,
        include_retired: bool = False,
        after: int | None = None,
        limit: int = 100,
    ) -> list[tuple[int, Entry]] | None:
        """A page of the entries of a memory with their positions and evidence, in the order of those.

        `after` is the last position on the page before. `None` if there is no such memory.
        """
        kind = None if content_type is None else check_type(content_type)
        row = await self._by_id(memory_id)
        if row is None:
            return None
        edge = -1 if (position := check_count("after", after)) is None else position
        page = (edge, check_limit(limit), kind)
        found = await self._entries(row.memory_id, as_of, include_retired, page)
        told = await self._database.with_evidence([entry for _, entry in found])
        return [(place, entry) for (place, _), entry in zip(found, told, strict=True)]

    async def get_entry(self, content_id: str) -> Entry | None:
        """One entry, also if it is no longer told; `None` if there is none."""
        key = (check_id("content_id", content_id), self._tenant)
        found = await self._database.fetch(entries.READ_ONE, key, entries.entries_from)
        told = await self._database.with_evidence([entry for _, entry in found])
        return told[0] if told else None

    async def get_history(self, content_id: str) -> list[Entry]:
        """An entry with what it has superseded, the oldest first."""
        history: list[Entry] = []
        waiting = [content_id]
        while waiting:
            entry = await self.get_entry(waiting.pop())
            if entry is not None and entry not in history:
                history.append(entry)
                waiting += entry.supersedes
        return by_succession(history)

    async def add_entry(
        self,
        agent_id: str,
        user_id: str,
        content_type: ContentType,
        text: str,
        *,
        valid_from: str | None = None,
        valid_to: str | None = None,
        confidence: float = 1.0,
        content_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Entry:
        """Write down what a person knows, without any evidence but their word.

        With a `content_id` the same thing a second time changes nothing; another under it is a
        `ConflictError`.
        """
        check_id("agent_id", agent_id)
        check_id("user_id", user_id)
        new = NewEntry(
            check_type(content_type),
            _check_statement(text),
            _check_confidence(confidence),
            read_date("valid_from", valid_from),
            read_date("valid_to", valid_to),
            content_id=check_key("content_id", content_id) or str(uuid.uuid4()),
            metadata=read_metadata("metadata", metadata),
        )
        made = MemoryRow.new(self._tenant, agent_id, user_id, column_now())
        await self._database.write(partial(_add, made, new, may_be_there=content_id is not None))
        return await self._written(new)

    async def add_entry_unless_known(
        self,
        agent_id: str,
        user_id: str,
        content_type: ContentType,
        text: str,
        *,
        valid_from: str | None = None,
        confidence: float = 1.0,
        metadata: Mapping[str, Any] | None = None,
    ) -> tuple[Entry, bool]:
        """Write something down unless an entry of its type says the same, in these words or in others.

        Returns the entry that says it, and whether it is new. Of several who write the same at once, one
        writes it.
        """
        new = NewEntry(
            check_type(content_type),
            _check_statement(text),
            _check_confidence(confidence),
            read_date("valid_from", valid_from),
            metadata=read_metadata("metadata", metadata),
        )
        check_id("agent_id", agent_id)
        made = MemoryRow.new(self._tenant, agent_id, check_id("user_id", user_id), column_now())
        known = await self._database.write(partial(_add_unless_known, self._database, made, new))
        if known is None:
            return await self._written(new), True
        return (await self._database.with_evidence([known]))[0], False

    async def edit_entry(
        self,
        content_id: str,
        text: str,
        *,
        edited_by: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Entry:
        """Correct an entry: a new one takes its place, and the old one stays in the history.

        The edit is the evidence of the new text, with its time and with `edited_by`, such as the name of a
        person or the id of an API key. The messages that the old entry cites stay the evidence of that one.
        The new entry has the old one's metadata, unless other metadata is given.
        """
        check_id("content_id", content_id)
        new = _Edit(
            _check_statement(text),
            None if edited_by is None else check_id("edited_by", edited_by),
            None if metadata is None else read_metadata("metadata", metadata),
        )
        edit = partial(_edit, self._database, self._tenant, content_id, new, column_now())
        return await self._written(await self._database.write(edit))

    async def delete_entry(self, content_id: str) -> int:
        """Delete an entry for good, with all that it has superseded; returns how many entries went."""
        check_id("content_id", content_id)
        return await self._database.write(
            partial(_delete, self._database, self._tenant, content_id, column_now())
        )

    async def _written(self, new: NewEntry) -> Entry:
        entry = await self.get_entry(new.content_id)
        assert entry is not None
        return entry

    async def _told(self, row: MemoryRow, as_of: datetime | str | None) -> Memory:
        memory = Memory(
            row.agent_id,
            row.user_id,
            memory_id=row.memory_id,
            created_at=row.started,
            updated_at=row.changed,
            version=row.version,
        )
        for _, entry in await self._entries(row.memory_id, as_of):
            getattr(memory, f"{entry.content_type}_content").append(entry.text)
        return memory

    async def _entries(
        self,
        memory_id: str,
        as_of: datetime | str | None,
        include_retired: bool = False,
        page: tuple[int, int | None, ContentType | None] = (-1, _EVERYTHING, None),
    ) -> list[tuple[int, Entry]]:
        """Entries by their positions: after one, so many at most, and of one type if that is named."""
        time = read_time("as_of", as_of)
        query = entries.READ_ALL if include_retired else entries.READ_LIVE
        if time is not None:
            query = entries.READ_AS_OF
        first, most, kind = page
        at = _NO_TIME if time is None else time_to_column(time)
        sql, of_kind = (query, ()) if kind is None else (entries.of_type(query), (kind,))

        decode = partial(page_from, entries.entries_from, itemgetter(-1))

        async def fetch(after: int, limit: int) -> Page[tuple[int, Entry], int]:
            return await self._database.fetch(sql, (memory_id, after, at, limit, *of_kind), decode)

        return await fill_page(fetch, first, most or 0)

    async def _memory_outlines(self, rows: Sequence[MemoryRow]) -> list[MemoryOutline]:
        if not rows:
            return []
        ids = (json.dumps([row.memory_id for row in rows]),)
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


def _add(memory: MemoryRow, new: NewEntry, may_be_there: bool) -> Script[None]:
    memory_id = yield from memories.find_or_make(memory)
    if may_be_there and (yield from _is_there(memory.tenant, memory_id, new)):
        return
    yield from entries.change(memory.tenant, memory_id, None, Changes((new,)), memory.created_at)


def _add_unless_known(database: MemoryDatabase, memory: MemoryRow, new: NewEntry) -> Script[Entry | None]:
    """Add an entry, unless the one that is returned says the same."""
    memory_id = yield from memories.find_or_make(memory)
    yield Statement(memories.LOCK, (memory_id, memory.tenant))  # whoever writes the same one now comes first
    for known in (yield from database.related_within(memory_id, new.text)):
        if known.content_type == new.content_type and say_the_same(known.text, new.text):
            return known
    yield from entries.change(memory.tenant, memory_id, None, Changes((new,)), memory.created_at)
    return None


def _is_there(tenant: str, memory_id: str, new: NewEntry) -> Script[bool]:
    """Whether an entry has been written before; another under its id, be it anybody's, is a conflict."""
    yield Statement(memories.LOCK, (memory_id, tenant))  # whoever writes the same one now comes first
    rows = yield Statement(entries.READ_IN_ANY_TENANT, (new.content_id,))
    if not rows:
        return False
    known = [
        (each.memory_id, each.content_type, each.text, each.metadata)
        for _, each in entries.entries_from(rows)
    ]
    if known != [(memory_id, new.content_type, new.text, new.metadata)]:
        raise ConflictError("there is another entry with this content_id")
    return True


def _save(database: MemoryDatabase, tenant: str, memory: Memory, now: str) -> Script[None]:
    made = MemoryRow.new(tenant, memory.agent_id, memory.user_id, now, memory.memory_id)
    made = made._replace(created_at=time_to_column(memory.created_at), version=memory.version)
    memory_id = yield from memories.find_or_make(made)
    rows = yield Statement(memories.LOCK, (memory_id, tenant))
    if (memory_id, MemoryRow(*rows[0]).version) != (memory.memory_id, memory.version):
        raise ConflictError("the memory has been changed since it was read, or has another memory_id")
    held = yield Statement(entries.READ_LIVE, (memory_id, -1, _NO_TIME, _EVERYTHING))
    known = [entry for _, entry in entries.entries_from(held)]
    missing, surplus = _differences(memory, known)
    texts = yield from remove_with_precursors(database.removal, memory_id, surplus)
    yield from delete_quoting_results(database.removal, memory_id, texts)
    changes = Changes(tuple(missing))
    if surplus and not changes:
        yield from memories.advance(memory_id, now, 0)
    yield from entries.change(tenant, memory_id, None, changes, now)


def _differences(memory: Memory, known: Sequence[Entry]) -> tuple[list[NewEntry], list[str]]:
    """What a memory holds beyond what is known, and the ids of what it lacks of that."""
    wanted: dict[tuple[ContentType, str], None] = {
        (kind, text): None for kind in CONTENT_TYPES for text in getattr(memory, f"{kind}_content")
    }
    held = {(entry.content_type, entry.text) for entry in known}
    missing = [NewEntry(kind, text) for kind, text in wanted if (kind, text) not in held]
    surplus = [entry.content_id for entry in known if (entry.content_type, entry.text) not in wanted]
    return missing, surplus


def _edit(database: MemoryDatabase, tenant: str, content_id: str, edit: _Edit, now: str) -> Script[NewEntry]:
    """Put an entry in the place of another. Erasing the messages of that erases the new one, too."""
    old = yield from _held_entry(tenant, content_id)
    if old is None or old.retired_at is not None:
        raise ConflictError("there is no entry with this content_id that is still told")
    rows = yield Statement(database.entries.cited, (json.dumps([content_id]),))
    cited = entries.evidence_from(rows).get(content_id, [])
    new = NewEntry(
        old.content_type,
        edit.text,
        1.0,
        old.valid_from,
        old.valid_to,
        old.slot,
        {EDITED: True, **({EDITED_BY: edit.edited_by} if edit.edited_by else {})},
        tuple(dict.fromkeys((each.conversation_id, each.message_id) for each in cited)),
        (content_id,),
        old.said_at,
        metadata=old.metadata if edit.metadata is None else edit.metadata,
    )
    yield from entries.change(tenant, old.memory_id, None, Changes((new,)), now)
    return new


def _delete(database: MemoryDatabase, tenant: str, content_id: str, now: str) -> Script[int]:
    memory_id = yield from _hold_memory_of(tenant, content_id)
    if memory_id is None or not (yield Statement(entries.MEMORY_OF, (content_id, tenant))):
        return 0
    yield from memories.advance(memory_id, now, 0)
    texts = yield from remove_with_precursors(database.removal, memory_id, [content_id])
    yield from delete_quoting_results(database.removal, memory_id, texts)
    return len(texts)


def _held_entry(tenant: str, content_id: str) -> Script[Entry | None]:
    """An entry as it is, with its memory held: until the transaction ends nobody changes either."""
    if (yield from _hold_memory_of(tenant, content_id)) is None:
        return None
    rows = yield Statement(entries.READ_ONE, (content_id, tenant))
    return next((entry for _, entry in entries.entries_from(rows)), None)


def _hold_memory_of(tenant: str, content_id: str) -> Script[str | None]:
    """The id of an entry's memory, which nobody else changes until the transaction ends."""
    rows = yield Statement(entries.MEMORY_OF, (content_id, tenant))
    if not rows:
        return None
    yield Statement(memories.LOCK, (rows[0][0], tenant))
    return str(rows[0][0])


# --- what callers give ---


def _check_statement(given: object) -> str:
    if not isinstance(given, str):
        raise InvalidTypeError(f"text must be a string, not {type(given).__name__}")
    if not given.strip():
        raise InvalidValueError("text must not be empty")
    return given


def _check_confidence(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidTypeError(f"confidence must be a number, not {type(given).__name__}")
    if not 0 <= given <= 1:
        raise InvalidValueError(f"confidence must be from 0 to 1, and it is {given:g}")
    return float(given)
