"""The audit log: who did what, and when, by ids. Never contents, and nothing that names a person.

The id of a user is personal, and the log outlives an erasure. So a target is told only if it is an id that we
made, or the hash of a user that receipts have too (`MemoryStore.receipt_subject`): with a receipt in hand it
can be found out what was done to whom, and from the log alone it cannot. Anything else is told as `other`.
A target may name several, with spaces between.
"""

import asyncio
import itertools
import json
import re
import secrets
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from ...memory.database.dialect import Dialect, dialect_of
from ...sessions.settings import check_limit
from ...sql.columns import (
    check_id,
    check_time,
    text_from_column,
    text_to_column,
    time_from_column,
    time_to_column,
)
from ...sql.database import SQLStore
from ...sql.description import tenants_in
from ...sql.scripts import Row, Script, Statement
from ..database.schema import AUDIT_LOG, ServiceSchema

OTHER = "other"
"""What is told of a target that may be personal."""

_LONGEST = 200  # characters of an action or the id of a request
_MOST_TARGETS = 4
_PURGED_AT_ONCE = 500
_AFTER_ALL = "g"  # sorts after every id
_TOLD = re.compile(
    r"([a-z_]+:)?"  # what kind of thing it is
    r"([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}|[0-9a-f]{64}|conv_[0-9A-Za-z]{16,128})"
)
_COLUMNS = "entry_id, tenant, at, key_id, action, target, status, request_id"
_AT, _STATUS = 2, 6  # their places among them
_LIST = (
    f"SELECT {_COLUMNS} FROM {AUDIT_LOG.name} WHERE tenant = ?1 AND entry_id < ?2"
    " ORDER BY entry_id DESC LIMIT ?3"
)
_TENANTS = tenants_in(AUDIT_LOG)
_PURGE = (
    f"DELETE FROM {AUDIT_LOG.name} WHERE tenant = ?1 AND entry_id IN (SELECT entry_id FROM {AUDIT_LOG.name}"
    " WHERE tenant = ?1 AND entry_id < ?2 ORDER BY entry_id LIMIT ?3) RETURNING 1"
)


@dataclass(frozen=True)
class AuditEntry:
    """One thing that was done, or was tried."""

    entry_id: str
    """A UUID that sorts by time."""
    tenant: str
    at: datetime
    key_id: str | None
    """`None` where the service runs open."""
    action: str
    """Such as `conversations.create`."""
    target: str | None
    status: int
    """That of the answer."""
    request_id: str | None


class AuditLog(SQLStore):
    """Keeps what was done, for all tenants; an entry is on disk when `record` returns."""

    schema = ServiceSchema()

    def __init__(
        self,
        url_or_path: str | Path,
        *,
        create_tables: bool = False,
        engine_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(url_or_path, create_tables=create_tables, engine_kwargs=engine_kwargs)
        self._add = _adding(dialect_of(self._database.dialect))
        self._batcher: Batcher[AuditEntry] = Batcher(self._write_entries)

    async def record(
        self,
        tenant: str,
        key_id: str | None,
        action: str,
        target: str | None,
        status: int,
        request_id: str | None = None,
    ) -> AuditEntry:
        """Keep an entry of now; those that come at once share a transaction."""
        now = datetime.now(UTC)
        entry = AuditEntry(
            time_ordered_id(now),
            check_id("tenant", tenant),
            now,
            key_id,
            action[:_LONGEST],
            told_target(target),
            status,
            None if request_id is None else request_id[:_LONGEST],
        )
        await self._batcher.add(entry)
        return entry

    async def list(self, tenant: str, *, before: str | None = None, limit: int = 50) -> Sequence[AuditEntry]:
        """A page, the newest first. `before` is the `entry_id` of the last on the page before."""
        latest = _AFTER_ALL if before is None else check_id("before", before)
        return await self._fetch(
            _LIST, (check_id("tenant", tenant), latest, check_limit(limit)), _entries_from
        )

    async def tenants(self) -> Sequence[str]:
        """Everybody who has entries."""
        return await self._fetch(_TENANTS, (), lambda rows: [str(tenant) for (tenant,) in rows])

    async def purge(self, tenant: str, before: datetime) -> int:
        """Delete what a tenant did before a time, and return how many entries that were."""
        check_time("before", before)
        first_kept, purged = _first_id_of(before), 0
        # Some at a time, so that others can write in between.
        while some := await self._write(partial(_purge, check_id("tenant", tenant), first_kept)):
            purged += some
        return purged

    async def aclose(self) -> None:
        """Write what is waiting, and let go of the database. Twice is harmless."""
        await self._batcher.settled()
        await super().aclose()

    async def _write_entries(self, entries: Sequence[AuditEntry]) -> None:
        await self._write(partial(_add, self._add, json.dumps([_row_of(entry) for entry in entries])))


def told_target(target: str | None) -> str | None:
    """A target as the log tells it: ids that we made, with their kind before them or without, or `other`."""
    if target is None:
        return None
    parts = target.split(" ", _MOST_TARGETS)[:_MOST_TARGETS]
    return " ".join(part if _TOLD.fullmatch(part) else OTHER for part in parts)


# --- ids ---

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_numbers = itertools.count(secrets.randbits(20))  # where another process starts is another place


def time_ordered_id(at: datetime) -> str:
    """A UUID of version 7: its texts sort by time, and those of one process by the order of the calls too."""
    return _uuid7(at, (next(_numbers) & 0xFFFFFF) << 38 | secrets.randbits(38))


def _first_id_of(at: datetime) -> str:
    return _uuid7(max(at, _EPOCH), 0)


def _uuid7(at: datetime, rest: int) -> str:
    """Milliseconds, the version, the microseconds beyond them, the variant, and 62 bits that are free."""
    milliseconds, microseconds = divmod((at - _EPOCH) // timedelta(microseconds=1), 1000)
    return str(uuid.UUID(int=milliseconds << 80 | 7 << 76 | microseconds << 64 | 2 << 62 | rest))


# --- transactions ---


def _adding(dialect: Dialect) -> str:
    """One statement for any number of entries, which are a JSON array of arrays."""
    fields = [dialect.element.format("value", number) for number in range(len(_COLUMNS.split(",")))]
    fields[_AT] = dialect.time.format(fields[_AT])
    fields[_STATUS] = f"CAST({fields[_STATUS]} AS BIGINT)"
    entries = dialect.each.format("?1")
    return f"INSERT INTO {AUDIT_LOG.name} ({_COLUMNS}) SELECT {', '.join(fields)} FROM {entries} AS entries"


def _add(adding: str, rows: str) -> Script[None]:
    yield Statement(adding, (rows,), alone=True)


def _purge(tenant: str, first_kept: str) -> Script[int]:
    rows = yield Statement(_PURGE, (tenant, first_kept, _PURGED_AT_ONCE), alone=True)
    return len(rows)


# --- rows ---


def _row_of(entry: AuditEntry) -> list[str | int | None]:
    return [
        entry.entry_id,
        entry.tenant,
        time_to_column(entry.at),
        entry.key_id,
        text_to_column(entry.action),
        entry.target,
        entry.status,
        None if entry.request_id is None else text_to_column(entry.request_id),
    ]


def _entries_from(rows: Sequence[Row]) -> Sequence[AuditEntry]:
    return [_entry_from(*row) for row in rows]


def _entry_from(
    entry_id: str,
    tenant: str,
    at: str,
    key_id: str | None,
    action: str,
    target: str | None,
    status: int,
    request_id: str | None,
) -> AuditEntry:
    asked = None if request_id is None else text_from_column(request_id)
    when = time_from_column(at)
    return AuditEntry(entry_id, tenant, when, key_id, text_from_column(action), target, status, asked)


# --- shared writes ---

T = TypeVar("T")

_MOST_AT_ONCE = 500


class _Waiting(NamedTuple, Generic[T]):
    value: T
    is_written: "asyncio.Future[None]"


class Batcher(Generic[T]):
    """Hands values to `write`, as many as are waiting; whoever added one waits until it is written.

    One write runs at a time. One that fails fails for all whose values were in it. Belongs to one event loop.
    """

    def __init__(self, write: Callable[[Sequence[T]], Awaitable[None]]) -> None:
        self._write = write
        self._waiting: list[_Waiting[T]] = []
        self._writing: asyncio.Task[None] | None = None

    async def add(self, value: T) -> None:
        """Returns when the value is written. Who stops waiting does not take it back."""
        is_written = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(value, is_written))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())
        await is_written

    async def settled(self) -> None:
        """Returns when nothing is waiting any more."""
        while self._writing is not None and not self._writing.done():
            await asyncio.wait([self._writing])

    async def _write_all(self) -> None:
        while self._waiting:
            some = self._waiting[:_MOST_AT_ONCE]
            del self._waiting[:_MOST_AT_ONCE]
            await self._write_some(some)

    async def _write_some(self, some: Sequence[_Waiting[T]]) -> None:
        writing = asyncio.ensure_future(self._write([waiting.value for waiting in some]))
        writing.add_done_callback(partial(_tell, [waiting.is_written for waiting in some]))
        await asyncio.wait([writing])


def _tell(waiting: Sequence["asyncio.Future[None]"], writing: "asyncio.Future[None]") -> None:
    """Whatever became of a write, those who wait for it hear of it; those who went away do not."""
    failure = None if writing.cancelled() else writing.exception()
    for is_written in waiting:
        if is_written.done():
            continue
        if writing.cancelled():
            is_written.cancel()
        elif failure is not None:
            is_written.set_exception(failure)
        else:
            is_written.set_result(None)
