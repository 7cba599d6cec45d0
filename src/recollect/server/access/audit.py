"""The audit log: which key did what, and when, as ids. It contains no contents and no personal data.

The id of a user is personal data, and the log outlives an erasure. A target is therefore recorded only if it
is an id that the service made, or the hash of a user that receipts contain, too
(`MemoryStore.receipt_subject`). With a receipt, the entries about a user can be found; with the log alone, no
user can be identified. Any other target is recorded as `other`. A target may have several parts, separated by
spaces.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from ...ids import time_ordered_id, uuid7
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
from ...sql.database import JoiningScript, SQLStore
from ...sql.description import tenants_in
from ...sql.scripts import Row, Script, Statement
from ..database.schema import AUDIT_LOG, ServiceSchema

OTHER = "other"
"""Recorded in place of a target that may be personal data."""

_MAX_LENGTH = 200  # characters of an action or a request id
_MAX_TARGETS = 4
_PURGE_BATCH = 500
_AFTER_ALL_IDS = "g"  # sorts after every hexadecimal id
_RECORDABLE = re.compile(
    r"([a-z_]+:)?"  # the kind of object
    r"([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}|[0-9a-f]{64}|conv_[0-9A-Za-z]{16,128})"
)
_COLUMNS = "entry_id, tenant, at, key_id, action, target, status, request_id"
_AT, _STATUS = 2, 6  # their positions among the columns
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
    """One audited request, successful or not."""

    entry_id: str
    """A UUID of version 7, which sorts by time."""
    tenant: str
    at: datetime
    key_id: str | None
    """`None` if the service runs without keys."""
    action: str
    """The operation, such as `conversations.create`."""
    target: str | None
    status: int
    """The HTTP status of the response."""
    request_id: str | None


def new_entry(
    tenant: str,
    key_id: str | None,
    action: str,
    target: str | None,
    status: int,
    request_id: str | None = None,
) -> AuditEntry:
    """An entry with the current time, which is not written yet."""
    now = datetime.now(UTC)
    return AuditEntry(
        time_ordered_id(_microseconds(now)),
        check_id("tenant", tenant),
        now,
        key_id,
        action[:_MAX_LENGTH],
        recordable_target(target),
        status,
        None if request_id is None else request_id[:_MAX_LENGTH],
    )


class AuditLog(SQLStore):
    """The audit log of all tenants. An entry is committed when `record` returns."""

    schema = ServiceSchema()

    def __init__(
        self,
        url_or_path: str | Path,
        *,
        create_tables: bool = False,
        engine_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(url_or_path, create_tables=create_tables, engine_kwargs=engine_kwargs)
        self._insert = _insert_statement(dialect_of(self._database.dialect))
        self._batcher: Batcher[AuditEntry] = Batcher(self.record_all)

    async def record(
        self,
        tenant: str,
        key_id: str | None,
        action: str,
        target: str | None,
        status: int,
        request_id: str | None = None,
    ) -> AuditEntry:
        """Write an entry with the current time. Concurrent entries share a transaction."""
        entry = new_entry(tenant, key_id, action, target, status, request_id)
        await self._batcher.add(entry)
        return entry

    @asynccontextmanager
    async def record_with_next_write(self, entry: AuditEntry) -> AsyncIterator[JoiningScript]:
        """Write an entry in the transaction of the write that follows in the block, in a file.

        `is_written` says after the block whether that has happened. If not, call `record`.
        """
        await self._prepared()
        with self._join_next_write(partial(_add, self._insert, json.dumps([_row_of(entry)]))) as joining:
            yield joining

    async def record_all(self, entries: Sequence[AuditEntry]) -> None:
        """Write entries in one transaction, except those that are written already."""
        await self._write(partial(_add, self._insert, json.dumps([_row_of(entry) for entry in entries])))

    async def list(self, tenant: str, *, before: str | None = None, limit: int = 50) -> Sequence[AuditEntry]:
        """A page of entries, newest first. `before` is the last `entry_id` of the previous page."""
        latest = _AFTER_ALL_IDS if before is None else check_id("before", before)
        return await self._fetch(
            _LIST, (check_id("tenant", tenant), latest, check_limit(limit)), _entries_from
        )

    async def tenants(self) -> Sequence[str]:
        """All tenants that have entries."""
        return await self._fetch(_TENANTS, (), lambda rows: [str(tenant) for (tenant,) in rows])

    async def purge(self, tenant: str, before: datetime) -> int:
        """Delete a tenant's entries from before a time; returns how many."""
        check_time("before", before)
        first_kept, purged = _first_id_of(before), 0
        # In batches, so that other writes can run in between.
        while count := await self._write(partial(_purge, check_id("tenant", tenant), first_kept)):
            purged += count
        return purged

    async def aclose(self) -> None:
        """Write all waiting entries and close the database. A second call does nothing."""
        await self._batcher.wait_until_idle()
        await super().aclose()


def recordable_target(target: str | None) -> str | None:
    """A target with each part that is not an id of the service replaced by `other`."""
    if target is None:
        return None
    parts = target.split(" ", _MAX_TARGETS)[:_MAX_TARGETS]
    return " ".join(part if _RECORDABLE.fullmatch(part) else OTHER for part in parts)


# --- ids ---

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _first_id_of(at: datetime) -> str:
    """An id that sorts before those of all entries from this time on."""
    return uuid7(_microseconds(max(at, _EPOCH)), 0)


def _microseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


# --- transactions ---


def _insert_statement(dialect: Dialect) -> str:
    """One statement that inserts any number of new entries, given as a JSON array of arrays."""
    fields = [dialect.element.format("value", number) for number in range(len(_COLUMNS.split(",")))]
    fields[_AT] = dialect.time.format(fields[_AT])
    fields[_STATUS] = f"CAST({fields[_STATUS]} AS BIGINT)"
    entries = dialect.each.format("?1")
    return (
        f"INSERT INTO {AUDIT_LOG.name} ({_COLUMNS}) SELECT {', '.join(fields)} FROM {entries} AS entries"
        " WHERE true ON CONFLICT (tenant, entry_id) DO NOTHING"
    )


def _add(insert: str, rows: str) -> Script[None]:
    yield Statement(insert, (rows,), alone=True)


def _purge(tenant: str, first_kept: str) -> Script[int]:
    rows = yield Statement(_PURGE, (tenant, first_kept, _PURGE_BATCH), alone=True)
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
    request = None if request_id is None else text_from_column(request_id)
    time = time_from_column(at)
    return AuditEntry(entry_id, tenant, time, key_id, text_from_column(action), target, status, request)


# --- group commit ---

T = TypeVar("T")

_MAX_BATCH = 500


class _Pending(NamedTuple, Generic[T]):
    value: T
    is_written: "asyncio.Future[None]"


class Batcher(Generic[T]):
    """Groups the values of concurrent callers into one write. Each caller waits until its value is written.

    One write runs at a time. If it fails, all callers whose values were in it get the error. A batcher
    belongs to one event loop.
    """

    def __init__(self, write: Callable[[Sequence[T]], Awaitable[None]]) -> None:
        self._write = write
        self._pending: list[_Pending[T]] = []
        self._writing: asyncio.Task[None] | None = None

    async def add(self, value: T) -> None:
        """Write a value, and return when it is written. A cancelled caller's value is still written."""
        is_written = asyncio.get_running_loop().create_future()
        self._pending.append(_Pending(value, is_written))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())
        await is_written

    async def wait_until_idle(self) -> None:
        """Wait until all values are written."""
        while self._writing is not None and not self._writing.done():
            await asyncio.wait([self._writing])

    async def _write_all(self) -> None:
        while self._pending:
            batch = self._pending[:_MAX_BATCH]
            del self._pending[:_MAX_BATCH]
            await self._write_batch(batch)

    async def _write_batch(self, batch: Sequence[_Pending[T]]) -> None:
        writing = asyncio.ensure_future(self._write([pending.value for pending in batch]))
        writing.add_done_callback(partial(_resolve, [pending.is_written for pending in batch]))
        await asyncio.wait([writing])


def _resolve(waiting: Sequence["asyncio.Future[None]"], writing: "asyncio.Future[None]") -> None:
    """Pass the outcome of a write to all callers that still wait for it."""
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
