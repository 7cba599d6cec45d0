"""The lists that this process has stored or read last: their items need not be encoded again.

The state of a graph holds the same items from step to step. An item is recognized by a digest of its
contents, so one that was changed in place counts as new.
"""

import marshal
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from langgraph.checkpoint.serde.base import SerializerProtocol
from pydantic import BaseModel

from .ranges import Range, Ranges, first, of_positions, positions, without_first
from .values import Encoded, print_item

Digest: TypeAlias = int
"""A hash of 64 bits with a secret of this process: that a changed item has the same is not to be expected."""

_MOST_ITEMS = 200_000  # digests that are kept, of all threads
_MOST_RANGES = 64  # a list in more pieces is stored anew
_MARSHAL_VERSION = 2  # later formats depend on how many references an object has


@dataclass(frozen=True, slots=True)
class KnownList:
    """The digests of the items of a stored list, and where they are in the log of its channel."""

    digests: Sequence[Digest]
    ranges: Ranges


class Reuse(NamedTuple):
    """Where the items of a new list are stored already."""

    prefix: Ranges
    """The positions of the first items."""
    rest: list[int | None]
    """The positions of the items after them; `None` for an item that is new."""

    @property
    def new_count(self) -> int:
        """How many items are new."""
        return self.rest.count(None)


def digest_of(serde: SerializerProtocol, item: object) -> Digest:
    """A digest of what an item consists of. Encoding each item would take ten times as long."""
    fields: Any = item
    if isinstance(item, BaseModel):
        fields = (id(type(item)), item.__dict__, item.__pydantic_extra__)
    try:
        return hash(marshal.dumps(fields, _MARSHAL_VERSION))
    except ValueError:  # it has parts of other types
        return hash(print_item(serde, item))


def store_all(items: Sequence[object]) -> Reuse:
    """Every item is new."""
    return Reuse((), [None] * len(items))


def reuse_known(known: KnownList, digests: Sequence[Digest]) -> Reuse:
    """Find the items of a list among those of a known one."""
    same = _common(known.digests, digests)
    if same == len(known.digests):
        return Reuse(known.ranges, [None] * (len(digests) - same))
    left = positions(without_first(known.ranges, same))
    stored = dict(zip(known.digests[same:], left, strict=True))
    # An item counts once, so that a list of equal items does not fall into pieces.
    return _bounded(
        Reuse(first(known.ranges, same), [stored.pop(each, None) for each in digests[same:]]), digests
    )


def reuse_stored(stored: Mapping[Encoded, int], prints: Sequence[Encoded]) -> Reuse:
    """Find items among stored ones by their bytes."""
    return _bounded(Reuse((), [stored.get(each) for each in prints]), prints)


def _bounded(reuse: Reuse, items: Sequence[object]) -> Reuse:
    pieces = len(reuse.prefix) + len(of_positions(_marked(reuse.rest)))
    return reuse if pieces <= _MOST_RANGES else store_all(items)


def _marked(rest: list[int | None]) -> list[int]:
    """Positions in which a run of new items counts as one piece."""
    marked, new = [], -len(rest) - 1
    for position in rest:
        marked.append(new if position is None else position)
        new += position is None
    return marked


def resolve(reuse: Reuse, start: int) -> Ranges:
    """The positions of all items, if the new ones are stored from `start` on."""
    places = []
    for position in reuse.rest:
        places.append(start if position is None else position)
        start += position is None
    found = list(reuse.prefix)
    for following in of_positions(places):
        if found and found[-1].end == following.start:
            found[-1] = Range(found[-1].start, following.end)
        else:
            found.append(following)
    return tuple(found)


def _common(old: Sequence[Digest], new: Sequence[Digest]) -> int:
    """The length of the common beginning."""
    different = (number for number, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1])
    return next(different, min(len(old), len(new)))


# --- the memory of the process ---


class Basis(NamedTuple):
    """The state of a thread to which positions belong. After a removal, positions may be gone."""

    thread: int
    generation: int


@dataclass(frozen=True, slots=True)
class KnownCheckpoint:
    """The lists of one checkpoint."""

    checkpoint_id: str
    basis: Basis
    lists: dict[str, KnownList] = field(default_factory=dict)
    ends: Mapping[str, int] = field(default_factory=dict)
    """Where the logs of channels end, unless another process has added to them."""


class KnownCheckpoints:
    """The last checkpoint of each thread and namespace, as long as there is room. For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_thread: OrderedDict[tuple[str, str], KnownCheckpoint] = OrderedDict()
        self._count = 0
        _alive.add(self)

    def get(self, thread_id: str, namespace: str, checkpoint_id: str | None) -> KnownCheckpoint | None:
        """The checkpoint, if it is the last one of its thread that was stored or read here."""
        with self._lock:
            known = self._by_thread.get((thread_id, namespace))
        return known if known is not None and known.checkpoint_id == checkpoint_id else None

    def put(self, thread_id: str, namespace: str, known: KnownCheckpoint) -> None:
        """Remember a checkpoint, and forget those that were used longest ago."""
        with self._lock:
            self._remove((thread_id, namespace))
            self._by_thread[thread_id, namespace] = known
            self._count += _count_items(known)
            while self._count > _MOST_ITEMS and len(self._by_thread) > 1:
                self._remove(next(iter(self._by_thread)))

    def forget(self, thread_id: str, namespace: str) -> None:
        """Forget a thread."""
        with self._lock:
            self._remove((thread_id, namespace))

    def _remove(self, key: tuple[str, str]) -> None:
        known = self._by_thread.pop(key, None)
        if known is not None:
            self._count -= _count_items(known)


def _count_items(known: KnownCheckpoint) -> int:
    return sum(len(each.digests) for each in known.lists.values()) + 1


_alive: "weakref.WeakSet[KnownCheckpoints]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for known in list(_alive):
        known._lock = threading.Lock()  # a thread of the parent may have held the old one


os.register_at_fork(after_in_child=_after_fork_in_child)
