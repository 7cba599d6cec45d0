"""Imports a stream of records: in batches, each in one transaction, in constant memory.

An import has no state of its own. Ids are stable, and what is stored already is skipped, so a repeated import
goes on where an interrupted one stopped, and importing twice is importing once.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeAlias

from ..errors import DatabaseBusyError
from ..memory.database.access import MemoryDatabase
from ..memory.store import MemoryStore
from ..memory.times import latest_allowed, now
from ..sql.columns import text_from_column, time_to_column
from .kinds import ReadOptions
from .prepare import Chunk, Defaults, Prepared, PreparedEntry, PreparedMemory, Preparer
from .records import STORE_ITEMS, ImportReport, Record, Skipped
from .session_rows import SCHEMAS, LogRow, SessionChunk
from .writing import Written, write_batch

Records: TypeAlias = Iterable[Record | Skipped] | AsyncIterator[Record | Skipped]

_ROWS = 2000  # of a batch
_BYTES = 4_000_000  # of the texts of a batch, about
_TRIES = 5
_PREVIEW = 80  # characters


class Importer:
    """Imports records into the database of a store, for its tenant."""

    def __init__(
        self,
        store: MemoryStore,
        *,
        agent_id: str | None = None,
        user_id: str | None = None,
        learn: bool = False,
        on_progress: Callable[[ImportReport], object] = lambda _: None,
    ) -> None:
        """`agent_id` and `user_id` apply to records that name none.

        With `learn`, workers learn from the imported conversations: with their original times, the oldest
        first, and only while no live conversation waits.
        """
        self.report = ImportReport()
        self._database: MemoryDatabase = store.memory_database
        self._start = store.start
        self._on_progress = on_progress
        self._defaults = Defaults(
            store.tenant, now(), latest_allowed(), agent_id, user_id, learn, store.masks_messages
        )
        self._preparer = Preparer(self._defaults)
        self._remapped: dict[str, str] = {}

    async def run(self, records: Records) -> ImportReport:
        """Import records and return the report. No more is read while a batch is written."""
        if isinstance(records, AsyncIterator):
            return await self._run_async(records)
        reading = iter(records)
        while batch := await asyncio.to_thread(self._next_batch, reading):
            await self._write(batch)
        return self._finished()

    async def _run_async(self, records: AsyncIterator[Record | Skipped]) -> ImportReport:
        some: list[Record | Skipped] = []
        size = 0
        async for record in records:
            some.append(record)
            size += _size(record)
            if size >= _BYTES or len(some) >= _ROWS:
                await self._import(some)
                some, size = [], 0
        await self._import(some)
        return self._finished()

    async def _import(self, some: list[Record | Skipped]) -> None:
        reading = iter(some)
        while batch := await asyncio.to_thread(self._next_batch, reading):
            await self._write(batch)

    def _finished(self) -> ImportReport:
        if self._defaults.learn:
            self._start()
        return self.report

    def _next_batch(self, records: Iterator[Record | Skipped]) -> list[Prepared | Skipped]:
        """Read and prepare records until there is enough for a transaction."""
        batch: list[Prepared | Skipped] = []
        rows = size = 0
        for record in records:
            if isinstance(record, Skipped):
                batch.append(record)
            else:
                prepared, skipped = self._preparer.prepare(record)
                batch += [*skipped, *prepared]
                size += _size(record)
                rows += sum(_rows_of(each) for each in prepared)
            rows += 1
            if rows >= _ROWS or size >= _BYTES:
                break
        return batch

    async def _write(self, batch: list[Prepared | Skipped]) -> None:
        for each in batch:
            if isinstance(each, Skipped):
                self.report.skip(each)
        prepared = [each for each in batch if not isinstance(each, Skipped)]
        if any(isinstance(each, SessionChunk | LogRow) for each in prepared):
            engine = await self._database.prepared()
            for schema in SCHEMAS:
                await engine.prepare(schema)
        if prepared:
            stamp = time_to_column(now())
            write = partial(
                write_batch, self._database, self._defaults.tenant, stamp, prepared, self._remapped
            )
            written = await _when_free(lambda: self._database.write(write))
            self._merge(written)
        self._on_progress(self.report)

    def _merge(self, written: Written) -> None:
        self._remapped = written.remapped
        self.report.merge(written.report)


def _rows_of(prepared: Prepared) -> int:
    if isinstance(prepared, Chunk):
        return len(prepared.messages)
    return len(prepared.items) if isinstance(prepared, SessionChunk) else 0


def _size(record: Record | Skipped) -> int:
    """The approximate size of a record: of its line, or else by the texts of its messages."""
    if isinstance(record, Skipped):
        return 100
    if record.size:
        return record.size + 200
    said: Any = record.data.get("messages") if isinstance(record.data, dict) else None
    if not isinstance(said, list):
        return 1000
    return sum(len(str(message.get("content", ""))) + 200 for message in said if isinstance(message, dict))


async def _when_free(write: Callable[[], Any]) -> Written:
    """Write, again if other writers kept the database busy for long."""
    for attempt in range(1, _TRIES):
        try:
            written: Written = await write()
            return written
        except DatabaseBusyError:
            await asyncio.sleep(attempt)
    last: Written = await write()
    return last


async def dry_run(
    records: Records, options: ReadOptions, default_agent: str, sample_size: int
) -> tuple[ImportReport, list[str]]:
    """Read and check records without writing: what an import would find, and a sample of it."""
    report, sample = ImportReport(), list[str]()
    preparer = Preparer(
        Defaults(options.tenant, now(), latest_allowed(), options.agent_id or default_agent, options.user_id)
    )
    async for record in _each(records):
        if isinstance(record, Record) and record.kind == STORE_ITEMS:
            report.added[STORE_ITEMS] += 1
            continue
        prepared: list[Prepared] = []
        skipped = [record] if isinstance(record, Skipped) else []
        if not isinstance(record, Skipped):
            prepared, skipped = preparer.prepare(record)
        for each in skipped:
            report.skip(each)
        for found in prepared:
            _count(report, found)
            if len(sample) < sample_size and (line := _outline(found)):
                sample.append(line)
    return report, sample


async def _each(records: Records) -> AsyncIterator[Record | Skipped]:
    if isinstance(records, AsyncIterator):
        async for record in records:
            yield record
        return
    for record in records:
        yield record


def _count(report: ImportReport, found: Prepared) -> None:
    if isinstance(found, Chunk):
        report.added["conversations"] += found.owner is not None
        report.added["messages"] += len(found.messages)
    elif isinstance(found, PreparedEntry):
        report.added["entries"] += 1
    elif isinstance(found, SessionChunk):
        report.added["sessions"] += found.heading is not None
        report.added["items"] += len(found.items)
    elif isinstance(found, LogRow):
        report.added[found.kind] += 1
    else:
        report.added["memories" if isinstance(found, PreparedMemory) else "runs"] += 1


def _outline(found: Prepared) -> str | None:
    """One line about a conversation or an entry, for the person who tries an import."""
    if isinstance(found, Chunk) and found.messages:
        first = found.messages[0]
        words = text_from_column(first["content"])[:_PREVIEW]
        return f"{first['created_at'][:10]}  {len(found.messages)} messages  {first['role']}: {words}"
    if isinstance(found, PreparedEntry):
        words = text_from_column(found.row["content_text"])[:_PREVIEW]
        return f"{found.row['learned_at'][:10]}  {found.row['content_type']}  {words}"
    return None
