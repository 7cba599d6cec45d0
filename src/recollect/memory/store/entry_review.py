"""Confirms and rejects entries, and purges expired ones."""

from datetime import datetime
from functools import partial

from ...errors import ConflictError, InvalidTypeError
from ...sessions.settings import check_limit
from ...sql.columns import time_to_column
from ...sql.scripts import Script, Statement
from ..database import entries
from ..database.access import MemoryDatabase, column_now
from ..database.removal import apply_succession, read_entries
from ..entry import Entry
from ..lifetime import is_expired
from ..operations.entries import ConfirmEntry, GetEntry, RejectEntry
from ..rights.consequences import AffectedEntry, successions
from ..times import read_time
from .entries import NOT_CURRENT, EntryRepository, delete, lock_current, lock_entry, lock_memory_of


class EntryReview:
    """What people say about the entries of one tenant: right, wrong, or no longer needed."""

    def __init__(self, database: MemoryDatabase, tenant: str, entries: EntryRepository) -> None:
        self._database = database
        self._tenant = tenant
        self._entries = entries

    async def confirm_entry(self, request: ConfirmEntry) -> Entry:
        """Confirm an entry."""
        await self._database.write(partial(_confirm, self._tenant, request.content_id, column_now()))
        return await self._reviewed(request.content_id)

    async def reject_entry(self, request: RejectEntry) -> Entry:
        """Reject an entry."""
        await self._database.write(
            partial(_reject, self._database, self._tenant, request.content_id, column_now())
        )
        return await self._reviewed(request.content_id)

    async def purge_expired_entries(self, before: datetime | str, *, limit: int = 100) -> int:
        """Delete entries that expired before a time, for good, with the entries that they superseded.

        At most `limit` of them are deleted. Returns how many entries were deleted in all.
        """
        edge = read_time("before", before)
        if edge is None:
            raise InvalidTypeError("before must be a time")
        key = (self._tenant, time_to_column(edge), check_limit(limit))
        rows = await self._database.fetch(entries.EXPIRED_OF_TENANT, key, list)
        counts = [
            await self._database.write(
                partial(_purge, self._database, self._tenant, content_id, edge, column_now())
            )
            for (content_id,) in rows
        ]
        return sum(counts)

    async def _reviewed(self, content_id: str) -> Entry:
        entry = await self._entries.get_entry(GetEntry(content_id))
        if entry is None:
            raise ConflictError(NOT_CURRENT)
        return entry


# --- transactions ---


def _confirm(tenant: str, content_id: str, now: str) -> Script[None]:
    position, entry = yield from lock_entry(tenant, content_id)
    if entry.retired_at is not None and entry.rejected_at is None:
        raise ConflictError(NOT_CURRENT)
    yield from entries.confirm(tenant, entry, position, now)


def _reject(database: MemoryDatabase, tenant: str, content_id: str, now: str) -> Script[None]:
    position, entry = yield from lock_current(tenant, content_id)
    yield from entries.reject(entry.memory_id, content_id, position, now)
    if entry.is_edited:
        return  # a person had replaced what came before
    found = yield from read_entries(database.removal.precursors, entry.memory_id, [content_id])
    # What says the same is rejected with it, and must not come back in its place.
    from ..texts.similarity import say_the_same

    precursors = [each for each in found if not say_the_same(each.text, entry.text)]
    gone = AffectedEntry(content_id, position, entry.text, None, entry.valid_from, entry.valid_to)
    for succession in successions([gone], precursors):
        yield from apply_succession(tenant, entry.memory_id, succession)


def _purge(database: MemoryDatabase, tenant: str, content_id: str, before: datetime, now: str) -> Script[int]:
    """Delete an expired entry. It may have been confirmed, edited or deleted since it was found."""
    if (yield from lock_memory_of(tenant, content_id)) is None:
        return 0
    rows = yield Statement(entries.READ_ONE, (content_id, tenant))
    found = [entry for _, entry in entries.entries_from(rows) if is_expired(entry, before)]
    return (yield from delete(database, tenant, content_id, now)) if found else 0
