"""Reads, adds, edits and deletes single entries."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from ...errors import ConflictError, InvalidTypeError, InvalidValueError
from ...ids import new_id
from ...sessions.settings import check_limit
from ...sql.columns import check_count, check_id, time_to_column
from ...sql.scripts import Script, Statement
from ..conversation import UNCHANGED, Unchanged, check_key
from ..database import entries, memories
from ..database.access import MemoryDatabase, column_now
from ..database.corruption import Page, fill_page, page_from
from ..database.entries import Changes, NewEntry
from ..database.memories import MemoryRow
from ..database.removal import delete_quoting_results, remove_with_precursors
from ..entry import BY_LIBRARY, EDITED, EDITED_BY, ContentType, Entry, by_succession, check_type
from ..lifetime import read_expiry
from ..metadata import read_metadata
from ..operations.entries import DeleteEntry, GetEntry, GetHistory
from ..operations.lists import EntryFilters, ListEntries, ListEntriesOf
from ..tags import read_tags
from ..times import read_date, read_time
from .lookup import NO_LIMIT, MemoryLookup

NOT_CURRENT = "there is no current entry with this content_id"


class _Edit(NamedTuple):
    """A person's correction of an entry."""

    text: str
    edited_by: str
    metadata: Mapping[str, Any] | None
    """`None` keeps the metadata of the old entry."""
    tags: tuple[str, ...] | None
    """`None` keeps the tags of the old entry."""
    expires_at: datetime | Unchanged | None


class EntryRepository:
    """The entries of one tenant."""

    def __init__(self, database: MemoryDatabase, lookup: MemoryLookup) -> None:
        self._database = database
        self._lookup = lookup
        self._tenant = lookup.tenant

    async def list_entries(self, request: ListEntries) -> list[Entry]:
        """The entries of an agent and a user with their evidence."""
        row = await self._lookup.find(request.agent_id, request.user_id)
        if row is None:
            return []
        most = NO_LIMIT if request.limit is None else check_limit(request.limit)
        found = await self._read_listed(row.memory_id, request, -1, most)
        return await self._database.with_evidence([entry for _, entry in found])

    async def list_entries_of(self, request: ListEntriesOf) -> list[tuple[int, Entry]] | None:
        """A page of the entries of a memory with their positions; `None` if the memory does not exist."""
        after = check_count("after", request.after)
        row = await self._lookup.find_by_id(request.memory_id)
        if row is None:
            return None
        found = await self._read_listed(row.memory_id, request, -1 if after is None else after, request.limit)
        cited = await self._database.with_evidence([entry for _, entry in found])
        return [(place, entry) for (place, _), entry in zip(found, cited, strict=True)]

    async def _read_listed(
        self, memory_id: str, wanted: EntryFilters, after: int, limit: int | None
    ) -> list[tuple[int, Entry]]:
        kind = None if wanted.content_type is None else check_type(wanted.content_type)
        return await self.read_page(memory_id, wanted.as_of, wanted.include_retired, (after, limit, kind))

    async def get_entry(self, request: GetEntry) -> Entry | None:
        """One entry with its evidence; `None` if it does not exist."""
        key = (request.content_id, self._tenant)
        found = await self._database.fetch(entries.READ_ONE, key, entries.entries_from)
        cited = await self._database.with_evidence([entry for _, entry in found])
        return cited[0] if cited else None

    async def get_history(self, request: GetHistory) -> list[Entry]:
        """An entry and the entries that it superseded."""
        history: list[Entry] = []
        waiting = [request.content_id]
        while waiting:
            entry = await self.get_entry(GetEntry(waiting.pop()))
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
        tags: Sequence[str] | None = None,
        expires_at: datetime | str | None = None,
    ) -> Entry:
        """Add an entry that a person states. It has no evidence but their word. Secrets in it are masked.

        At `expires_at` it stops to hold: a time, or a date, which is included. With a `content_id`, adding
        the same entry again changes nothing. A different entry under an id in use is a `ConflictError`.
        """
        check_id("agent_id", agent_id)
        check_id("user_id", user_id)
        new = NewEntry(
            check_type(content_type),
            _check_statement(text),
            _check_confidence(confidence),
            read_date("valid_from", valid_from),
            read_date("valid_to", valid_to),
            content_id=check_key("content_id", content_id) or new_id(),
            metadata=read_metadata("metadata", metadata),
            tags=read_tags("tags", tags),
            expires_at=read_expiry("expires_at", expires_at),
        )
        made = MemoryRow.new(self._tenant, agent_id, user_id, column_now())
        await self._database.write(partial(_add, made, new, may_exist=content_id is not None))
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
        tags: Sequence[str] | None = None,
        expires_at: datetime | str | None = None,
        unless_rejected: bool = False,
    ) -> tuple[Entry, bool]:
        """Add an entry unless an entry of the same type says the same, in these words or in others.

        Returns the entry that says it, and whether it is new. If several callers add the same text at once,
        one of them adds it. With `unless_rejected`, as a model should write, an entry that a person has
        rejected counts as one that says the same.
        """
        new = NewEntry(
            check_type(content_type),
            _check_statement(text),
            _check_confidence(confidence),
            read_date("valid_from", valid_from),
            metadata=read_metadata("metadata", metadata),
            tags=read_tags("tags", tags),
            expires_at=read_expiry("expires_at", expires_at),
        )
        check_id("agent_id", agent_id)
        made = MemoryRow.new(self._tenant, agent_id, check_id("user_id", user_id), column_now())
        known = await self._database.write(
            partial(_add_unless_known, self._database, made, new, unless_rejected)
        )
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
        tags: Sequence[str] | None = None,
        expires_at: datetime | str | Unchanged | None = UNCHANGED,
    ) -> Entry:
        """Correct an entry. A new entry supersedes it, and the old one stays in the history.

        The edit itself is the evidence of the new text: its time, and `edited_by`, such as the name of a
        person or the id of an API key; `library` if it is not given. The messages that the old entry cites
        remain its evidence. The new entry keeps the metadata, the tags and the expiry of the old one, unless
        others are given.
        """
        check_id("content_id", content_id)
        new = _Edit(
            _check_statement(text),
            BY_LIBRARY if edited_by is None else check_id("edited_by", edited_by),
            None if metadata is None else read_metadata("metadata", metadata),
            None if tags is None else read_tags("tags", tags),
            UNCHANGED if expires_at is UNCHANGED else read_expiry("expires_at", expires_at),
        )
        edit = partial(_edit, self._database, self._tenant, content_id, new, column_now())
        return await self._written(await self._database.write(edit))

    async def delete_entry(self, request: DeleteEntry) -> int:
        """Delete an entry and all entries that it superseded; returns the number deleted."""
        return await self._database.write(
            partial(delete, self._database, self._tenant, request.content_id, column_now())
        )

    async def _written(self, new: NewEntry) -> Entry:
        entry = await self.get_entry(GetEntry(new.content_id))
        assert entry is not None
        return entry

    async def read_page(
        self,
        memory_id: str,
        as_of: datetime | str | None,
        include_retired: bool = False,
        page: tuple[int, int | None, ContentType | None] = (-1, NO_LIMIT, None),
    ) -> list[tuple[int, Entry]]:
        """Entries with their positions, without evidence.

        `page` is the position to start after, the limit, and the one type to read, or `None` for all.
        """
        time = read_time("as_of", as_of)
        query = entries.READ_ALL if include_retired else entries.READ_LIVE
        if time is not None:
            query = entries.READ_AS_OF
        first, most, kind = page
        at = column_now() if time is None else time_to_column(time)
        sql, of_kind = (query, ()) if kind is None else (entries.of_type(query), (kind,))

        decode = partial(page_from, entries.entries_from, itemgetter(-1))

        async def fetch(after: int, limit: int) -> Page[tuple[int, Entry], int]:
            return await self._database.fetch(sql, (memory_id, after, at, limit, *of_kind), decode)

        return await fill_page(fetch, first, most or 0)


# --- transactions ---


def _add(memory: MemoryRow, new: NewEntry, may_exist: bool) -> Script[None]:
    memory_id = yield from memories.find_or_make(memory)
    if may_exist and (yield from _is_stored(memory.tenant, memory_id, new)):
        return
    yield from entries.change(memory.tenant, memory_id, None, Changes((new,)), memory.created_at)


def _add_unless_known(
    database: MemoryDatabase, memory: MemoryRow, new: NewEntry, unless_rejected: bool
) -> Script[Entry | None]:
    """Add an entry unless a stored one says the same, which is then returned."""
    from ..texts.similarity import say_the_same

    memory_id = yield from memories.find_or_make(memory)
    # The lock on the memory makes a concurrent writer of the same text wait, and then find this entry.
    yield Statement(memories.LOCK, (memory_id, memory.tenant))
    found = yield from database.related_within(memory_id, new.text)
    if unless_rejected:
        rows = yield Statement(entries.READ_REJECTED, (memory_id, entries.MOST_REJECTED))
        found += [entry for _, entry in entries.entries_from(rows)]
    for known in found:
        if known.content_type == new.content_type and say_the_same(known.text, new.text):
            return known
    yield from entries.change(memory.tenant, memory_id, None, Changes((new,)), memory.created_at)
    return None


def _is_stored(tenant: str, memory_id: str, new: NewEntry) -> Script[bool]:
    """Whether this entry is stored already. A different entry under its id, in any tenant, is a conflict."""
    yield Statement(memories.LOCK, (memory_id, tenant))  # a concurrent writer of the same entry waits here
    rows = yield Statement(entries.READ_IN_ANY_TENANT, (new.content_id,))
    if not rows:
        return False
    known = [
        (each.memory_id, each.content_type, each.text, each.metadata, set(each.tags))
        for _, each in entries.entries_from(rows)
    ]
    if known != [(memory_id, new.content_type, new.text, new.metadata, set(new.tags))]:
        raise ConflictError("there is another entry with this content_id")
    return True


def _edit(database: MemoryDatabase, tenant: str, content_id: str, edit: _Edit, now: str) -> Script[NewEntry]:
    """Supersede an entry. The new entry cites the same messages, so erasing them erases it too."""
    _, old = yield from lock_current(tenant, content_id)
    rows = yield Statement(database.entries.cited, (json.dumps([content_id]),))
    cited = entries.evidence_from(rows).get(content_id, [])
    new = NewEntry(
        old.content_type,
        edit.text,
        1.0,
        old.valid_from,
        old.valid_to,
        old.slot,
        {EDITED: True, EDITED_BY: edit.edited_by},
        tuple(dict.fromkeys((each.conversation_id, each.message_id) for each in cited)),
        (content_id,),
        old.said_at,
        metadata=old.metadata if edit.metadata is None else edit.metadata,
        tags=old.tags if edit.tags is None else edit.tags,
        expires_at=old.expires_at if edit.expires_at is UNCHANGED else edit.expires_at,
    )
    yield from entries.change(tenant, old.memory_id, None, Changes((new,)), now)
    return new


def delete(database: MemoryDatabase, tenant: str, content_id: str, now: str) -> Script[int]:
    memory_id = yield from lock_memory_of(tenant, content_id)
    if memory_id is None or not (yield Statement(entries.MEMORY_OF, (content_id, tenant))):
        return 0
    yield from memories.advance(memory_id, now, 0)
    texts = yield from remove_with_precursors(database.removal, memory_id, [content_id])
    yield from delete_quoting_results(database.removal, memory_id, texts)
    return len(texts)


def lock_current(tenant: str, content_id: str) -> Script[tuple[int, Entry]]:
    """A current entry with its position, as `lock_entry`. Any other is a `ConflictError`."""
    position, entry = yield from lock_entry(tenant, content_id)
    if entry.retired_at is not None:
        raise ConflictError(NOT_CURRENT)
    return position, entry


def lock_entry(tenant: str, content_id: str) -> Script[tuple[int, Entry]]:
    """An entry with its position. Its memory is locked: neither can change until the transaction ends."""
    if (yield from lock_memory_of(tenant, content_id)) is None:
        raise ConflictError(NOT_CURRENT)
    rows = yield Statement(entries.READ_ONE, (content_id, tenant))
    found = entries.entries_from(rows)
    if not found:
        raise ConflictError(NOT_CURRENT)
    return found[0]


def lock_memory_of(tenant: str, content_id: str) -> Script[str | None]:
    """Lock the memory of an entry until the transaction ends; returns its id, `None` if there is no entry."""
    rows = yield Statement(entries.MEMORY_OF, (content_id, tenant))
    if not rows:
        return None
    yield Statement(memories.LOCK, (rows[0][0], tenant))
    return str(rows[0][0])


# --- checks of arguments ---


def _check_statement(given: object) -> str:
    """The text of an entry that a person writes. Its secrets are masked."""
    from ..guard.secrets import mask_secrets  # it compiles many patterns

    if not isinstance(given, str):
        raise InvalidTypeError(f"text must be a string, not {type(given).__name__}")
    if not given.strip():
        raise InvalidValueError("text must not be empty")
    return mask_secrets(given).text


def _check_confidence(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidTypeError(f"confidence must be a number, not {type(given).__name__}")
    if not 0 <= given <= 1:
        raise InvalidValueError(f"confidence must be from 0 to 1, and it is {given:g}")
    return float(given)
