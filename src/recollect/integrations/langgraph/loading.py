"""Reads checkpoints: runs the queries of `reading.py` and remembers the lists that were read."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol

from ...errors import TransientError
from ...sql.garbage import pause_garbage_collection
from .known import KnownCheckpoint, KnownCheckpoints, KnownList, digest_of
from .place import CheckpointPlace
from .reading import (
    FIND_NEWEST,
    FIND_ONE,
    Found,
    Lists,
    Parts,
    Search,
    StoredWrites,
    Version,
    assemble,
    found_from,
    item_parameters,
    items_from,
    items_query,
    value_parameters,
    values_from,
    values_query,
    versions_of,
    wanted_ranges,
    writes_from,
    writes_query,
)
from .tables import CheckpointTables
from .values import Encoded, as_item_list, decode

T = TypeVar("T")

_TRIES = 5  # of a read during which rows are removed
_LARGE = 100_000  # bytes; decoding more would block the event loop for some milliseconds


class Loader:
    """Reads checkpoints from the tables."""

    def __init__(self, tables: CheckpointTables, serde: SerializerProtocol, known: KnownCheckpoints) -> None:
        self.tables = tables
        self.serde = serde
        self._known = known

    async def read(self, place: CheckpointPlace) -> CheckpointTuple | None:
        """The checkpoint at a place, or the newest one there. Its lists are remembered."""
        for _ in range(_TRIES):
            found = await self.find(place)
            if found is None:
                return None
            checkpoint = decode(self.serde, found.checkpoint)
            parts = await self.read_parts(found.basis.thread, [found], versions_of(checkpoint))
            if parts.writes.generation == found.basis.generation:
                return await self._run(_size(parts), partial(self._remember, found, checkpoint, parts))
        raise TransientError("checkpoints of the thread are being removed; try again")

    async def find(self, place: CheckpointPlace) -> Found | None:
        """The row of a checkpoint, or of the newest one."""
        if place.checkpoint_id is None:
            rows = await self.tables.fetch(FIND_NEWEST, place[:2], found_from)
        else:
            rows = await self.tables.fetch(FIND_ONE, place, found_from)
        return rows[0] if rows else None

    async def read_page(
        self, search: Search, wanted: Mapping[str, Any], size: int
    ) -> tuple[list[CheckpointTuple], Search | None]:
        """Some checkpoints that match, and where to go on; `None` after the last one."""
        for _ in range(_TRIES):
            rows = await self.tables.fetch(*search.query(size), found_from)
            matching = [found for found in rows if self._matches(found, wanted)]
            page = await self._read_all(matching)
            if page is not None:
                end = rows[-1] if len(rows) == size else None
                return page, None if end is None else replace(search, after_row=_row_key(end))
        raise TransientError("checkpoints of the thread are being removed; try again")

    def _matches(self, found: Found, wanted: Mapping[str, Any]) -> bool:
        if not wanted:
            return True
        metadata = decode(self.serde, found.metadata)
        return all(name in metadata and metadata[name] == value for name, value in wanted.items())

    async def _read_all(self, rows: Sequence[Found]) -> list[CheckpointTuple] | None:
        """The checkpoints of these rows. `None` if some were removed meanwhile."""
        by_thread: defaultdict[int, list[Found]] = defaultdict(list)
        for found in rows:
            by_thread[found.basis.thread].append(found)
        made: dict[Found, CheckpointTuple] = {}
        for thread, some in by_thread.items():
            checkpoints = {found: decode(self.serde, found.checkpoint) for found in some}
            versions = set().union(*map(versions_of, checkpoints.values()))
            parts = await self.read_parts(thread, some, versions)
            if any(parts.writes.generation != found.basis.generation for found in some):
                return None
            for found, checkpoint in checkpoints.items():
                work = partial(self._assemble, found, checkpoint, parts)
                made[found] = (await self._run(_size(parts), work)).checkpoint
        return [made[found] for found in rows]

    async def read_parts(self, thread: int, rows: Sequence[Found], versions: Iterable[Version]) -> Parts:
        """All that some checkpoints of a thread are made of."""
        values = await self.read_values(thread, versions)
        items: dict[str, dict[int, Encoded]] = {}
        for channel, ranges in wanted_ranges(values).items():
            items[channel] = {}
            for parameters in item_parameters(thread, channel, ranges):
                query = items_query((len(parameters) - 2) // 2)
                items[channel] |= await self.tables.fetch(query, parameters, items_from)
        ids = [found.place.checkpoint_id or "" for found in rows]
        return Parts(values, items, await self.read_writes(thread, ids))

    async def read_values(self, thread: int, versions: Iterable[Version]) -> dict[Version, Encoded]:
        """The stored values of some versions."""
        values: dict[Version, Encoded] = {}
        for parameters in value_parameters(thread, versions):
            query = values_query((len(parameters) - 1) // 2)
            values |= await self.tables.fetch(query, parameters, values_from)
        return values

    async def read_writes(self, thread: int, checkpoint_ids: Sequence[str]) -> StoredWrites:
        """The pending writes of some checkpoints."""
        query = writes_query(len(checkpoint_ids))
        return await self.tables.fetch(query, [thread, *checkpoint_ids], writes_from)

    def _remember(self, found: Found, checkpoint: dict[str, Any], parts: Parts) -> CheckpointTuple:
        made = self._assemble(found, checkpoint, parts)
        values = made.checkpoint.checkpoint["channel_values"]
        lists = {}
        for channel, ranges in made.ranges.items():
            listed = as_item_list(values[channel])
            if listed is not None:
                digests = [digest_of(self.serde, item) for item in listed.items]
                lists[channel] = KnownList(digests, ranges)
        place = found.place
        known = KnownCheckpoint(place.checkpoint_id or "", found.basis, lists)
        self._known.put(place.thread_id, place.namespace, known)
        return made.checkpoint

    def _assemble(self, found: Found, checkpoint: dict[str, Any], parts: Parts) -> Lists:
        return assemble(self.serde, found, checkpoint, decode(self.serde, found.metadata), parts)

    async def _run(self, size: int, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(_without_collector, work) if size > _LARGE else work()


def _without_collector(work: Callable[[], T]) -> T:
    with pause_garbage_collection():
        return work()


def _size(parts: Parts) -> int:
    in_items = sum(len(item.data) for channel in parts.items.values() for item in channel.values())
    return in_items + sum(len(value.data) for value in parts.values.values())


def _row_key(found: Found) -> tuple[str, int]:
    return found.place.checkpoint_id or "", found.basis.thread
