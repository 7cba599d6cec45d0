"""Stores checkpoints: finds out what is new in them, encodes that, and runs the scripts of `writing.py`."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, ChannelVersions, Checkpoint
from langgraph.checkpoint.serde.base import SerializerProtocol

from ...errors import InvalidValueError, StatementRefusedError
from ...sql.columns import check_id
from ...text_checks import check_text
from . import ranges as ranges_
from .known import Basis, Digest, KnownCheckpoint, KnownCheckpoints, KnownList, Reuse, digest_of, store_all
from .one_statement import MOST_ITEMS, put_in_one_statement
from .place import CheckpointPlace, key_of_version, place_of, user_of
from .sources import Source, find_known, find_stored, read_stored
from .tables import CheckpointTables
from .values import Encoded, ItemList, as_item_list, encode, is_heavy
from .writing import (
    NewCheckpoint,
    NewList,
    NewValue,
    NewWrite,
    PositionsLostError,
    Stored,
    put_checkpoint,
    put_writes,
    put_writes_of,
)

T = TypeVar("T")
Lists: TypeAlias = Mapping[str, ItemList]
"""The lists of a checkpoint that have a new version, by channel."""
Reuses: TypeAlias = Mapping[str, Reuse]

_FEW_ITEMS = 64  # encoding more would block the event loop for some milliseconds
_LONG_LIST = 5000  # making digests of more items would do the same
_HEAVY = 2000  # parts of a value, as `is_heavy` counts them


class _Request(NamedTuple):
    """A checkpoint to store."""

    place: CheckpointPlace
    parent: CheckpointPlace
    user_id: str | None
    checkpoint: Checkpoint
    metadata: Mapping[str, Any]
    versions: ChannelVersions
    lists: Lists
    digests: Mapping[str, Sequence[Digest]]
    """The digests of the items of these lists."""


@dataclass(frozen=True)
class Saver:
    """Stores checkpoints and pending writes."""

    tables: CheckpointTables
    serde: SerializerProtocol
    known: KnownCheckpoints

    async def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
        new_versions: ChannelVersions,
    ) -> None:
        """Store a checkpoint, and remember its lists.

        Items that are stored already are found by what this process remembers; else by what is stored. If
        these are removed meanwhile, all items are stored anew.
        """
        request = await self._request(config, checkpoint, metadata, new_versions)
        for find in (self._find_known, self._find_stored, _find_none):
            found = await find(request)
            if found is None:
                continue
            basis, reuses = found
            new = await self._encode(request, basis, reuses)
            try:
                stored = await self._store(request, new)
            except PositionsLostError:
                continue
            return self._remember(request, stored)
        raise AssertionError("a checkpoint that reuses no items cannot lose any")

    async def _request(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
        versions: ChannelVersions,
    ) -> _Request:
        parent = place_of(config)
        place = parent._replace(checkpoint_id=check_id("checkpoint['id']", checkpoint["id"]))
        lists = _lists_of(checkpoint, versions)
        is_long = any(len(each.items) > _LONG_LIST for each in lists.values())
        digests = await _run(is_long, partial(_digests_of, self.serde, lists))
        return _Request(place, parent, user_of(config), checkpoint, metadata, versions, lists, digests)

    async def _store(self, request: _Request, new: NewCheckpoint) -> Stored:
        """Store a checkpoint: on PostgreSQL by one statement, if enough is known of the thread."""
        parent = request.parent
        known = self.known.get(parent.thread_id, parent.namespace, parent.checkpoint_id)
        if known is not None and self.tables.is_postgresql and _is_small(new, known):
            try:
                stored = await self.tables.write(partial(put_in_one_statement, new, known.basis, known.ends))
            except StatementRefusedError:
                stored = None  # another process has added items
            if stored is not None:
                return stored
        return await self.tables.write(partial(put_checkpoint, new))

    async def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> None:
        """Store the writes of a task."""
        place = place_of(config)
        if place.checkpoint_id is None:
            raise InvalidValueError("config['configurable'] must have a 'checkpoint_id' to store writes")
        if not writes:
            return None
        task = check_id("task_id", task_id), check_text("task_path", task_path)
        is_large = is_heavy([value for _, value in writes], _HEAVY)
        encoded = await _run(is_large, partial(_encode_writes, self.serde, writes, *task))
        known = self.known.get(*place)
        if known is not None:
            with suppress(StatementRefusedError):  # if the thread was deleted, and its row with it
                return await self.tables.write(partial(put_writes_of, known.basis.thread, place, encoded))
        await self.tables.write(partial(put_writes, place, encoded))
        return None

    async def _find_known(self, request: _Request) -> tuple[Basis, Reuses] | None:
        parent = request.parent
        known = self.known.get(parent.thread_id, parent.namespace, parent.checkpoint_id)
        if known is None:
            return None
        return known.basis, find_known(known.lists, request.digests)

    async def _find_stored(self, request: _Request) -> tuple[Basis, Reuses] | None:
        if not request.lists or request.parent.checkpoint_id is None:
            return None
        source: Source | None = await read_stored(self.tables, self.serde, request.parent, set(request.lists))
        if source is None:
            return None
        is_long = any(len(each.items) > _FEW_ITEMS for each in request.lists.values())
        return source.basis, await _run(is_long, partial(find_stored, source, request.lists, self.serde))

    async def _encode(self, request: _Request, basis: Basis | None, reuses: Reuses) -> NewCheckpoint:
        others = [request.checkpoint["channel_values"].get(name) for name in request.versions]
        is_large = sum(reuse.new_count for reuse in reuses.values()) > _FEW_ITEMS or is_heavy(
            [value for value in others if as_item_list(value) is None], _HEAVY
        )
        return await _run(is_large, partial(_encode_checkpoint, self.serde, request, basis, reuses))

    def _remember(self, request: _Request, stored: Stored) -> None:
        place, parent = request.place, request.parent
        last = self.known.get(parent.thread_id, parent.namespace, parent.checkpoint_id)
        is_same = last is not None and last.basis == stored.basis
        before = last.lists if last is not None and is_same else {}
        ends = {**(last.ends if last is not None and is_same else {}), **stored.ends}
        lists = {name: each for name, each in before.items() if name not in request.versions}
        lists |= {name: KnownList(each, stored.ranges[name]) for name, each in request.digests.items()}
        known = KnownCheckpoint(place.checkpoint_id or "", stored.basis, lists, ends)
        self.known.put(place.thread_id, place.namespace, known)


def _is_small(new: NewCheckpoint, known: KnownCheckpoint) -> bool:
    """Whether a checkpoint fits into one statement, and all positions of its items are known."""
    if new.basis not in (None, known.basis) or len(new.values) > MOST_ITEMS:
        return False
    count = sum(len(each.new) for each in new.lists)
    return count <= MOST_ITEMS and all(each.channel in known.ends for each in new.lists if each.new)


async def _find_none(request: _Request) -> tuple[None, Reuses]:
    return None, {channel: store_all(each.items) for channel, each in request.lists.items()}


def _lists_of(checkpoint: Checkpoint, versions: ChannelVersions) -> dict[str, ItemList]:
    """The lists that have a new version, copied: the state may change while its values are encoded."""
    values = checkpoint["channel_values"]
    return {
        channel: ItemList(found.kind, list(found.items))
        for channel in versions
        if (found := as_item_list(values.get(channel))) is not None
    }


def _digests_of(serde: SerializerProtocol, lists: Lists) -> dict[str, list[Digest]]:
    return {channel: [digest_of(serde, item) for item in each.items] for channel, each in lists.items()}


def _encode_checkpoint(
    serde: SerializerProtocol, request: _Request, basis: Basis | None, reuses: Reuses
) -> NewCheckpoint:
    """Encode what is new. If the serializer fails half-way, nothing was stored."""
    values = request.checkpoint["channel_values"]
    rest = {name: part for name, part in request.checkpoint.items() if name != "channel_values"}
    run_id = request.metadata.get("run_id")
    return NewCheckpoint(
        place=request.place,
        parent_id=request.parent.checkpoint_id,
        user_id=request.user_id,
        run_id=None if run_id is None else str(run_id),
        checkpoint=encode(serde, rest),
        metadata=encode(serde, dict(request.metadata)),
        values=[
            NewValue(channel, key_of_version(version), encode(serde, values[channel]))
            for channel, version in request.versions.items()
            if channel not in request.lists and channel in values
        ],
        lists=[
            NewList(
                channel,
                key_of_version(request.versions[channel]),
                each.kind,
                reuses[channel],
                _encode_new(serde, each.items, reuses[channel]),
            )
            for channel, each in request.lists.items()
        ],
        basis=basis
        if any(reuse.new_count < len(reuse.rest) or reuse.prefix for reuse in reuses.values())
        else None,
    )


def _encode_new(serde: SerializerProtocol, items: list[Any], reuse: Reuse) -> list[Encoded]:
    after = items[ranges_.length(reuse.prefix) :]
    return [encode(serde, item) for item, at in zip(after, reuse.rest, strict=True) if at is None]


def _encode_writes(
    serde: SerializerProtocol, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
) -> list[NewWrite]:
    return [
        NewWrite(task_id, WRITES_IDX_MAP.get(channel, number), task_path, channel, encode(serde, value))
        for number, (channel, value) in enumerate(writes)
    ]


async def _run(is_large: bool, work: Callable[[], T]) -> T:
    """Run work, on a thread if it would block the event loop."""
    return await asyncio.to_thread(work) if is_large else work()
