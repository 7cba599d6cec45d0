"""The lists that this process has stored or read last: their items need not be encoded again.

The state of a graph holds the same objects from step to step, so an item is recognized by its identity. But
an object may have been changed in place. The newest items are therefore compared by their bytes, and an item
that a task of the step returned is stored anew. Messages are compared by their content, unless there are many
and the writes of the step are known. A node that changes an older object must return it, as LangGraph asks of
nodes.
"""

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, is_
from typing import Any, NamedTuple, TypeAlias

from .frozen import freeze
from .place import Place
from .ranges import Range, Ranges, first, of_positions, positions, without_first
from .values import Encoded

_NEWEST = 4  # items that are compared by their bytes
_MOST_ITEMS = 100_000  # items that are kept alive, of all threads
_SHORT = 2000  # messages that are always compared by their content: more would take a millisecond
_MOST_STEPS = 1000  # steps whose returned objects are remembered
_MOST_RANGES = 64  # a list in more pieces is stored anew

_content = attrgetter("content")
Print: TypeAlias = Callable[[Any], Encoded]


@dataclass(frozen=True, slots=True)
class KnownList:
    """The items of a stored list, and where they are in the log of its channel."""

    items: list[Any]
    contents: list[Any] | None
    """The contents of the items when they were stored, if all are messages."""
    ranges: Ranges
    newest: list[Encoded]
    """The bytes of the last items."""
    frozen: list[bytes | None]
    """What these consist of, as `freeze` returns it, which is quicker to compare."""


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


def know(items: Sequence[Any], ranges: Ranges, print_: Print) -> KnownList:
    """Remember a list as it is now."""
    items = list(items)
    newest = items[-_NEWEST:]
    return KnownList(
        items, _contents(items), ranges, [print_(item) for item in newest], [freeze(item) for item in newest]
    )


def know_longer(
    known: KnownList, items: Sequence[Any], ranges: Ranges, print_: Print, prints: Sequence[Encoded] = ()
) -> KnownList:
    """Remember a list that begins with the items of a known one: only the new ones are looked at.

    `prints` are the bytes of the new items, if they are at hand.
    """
    items = list(items)
    added = items[len(known.items) :]
    newest = added[-_NEWEST:]
    contents = None if known.contents is None else _contents(added)
    if len(prints) != len(added):
        prints = [print_(item) for item in newest]
    return KnownList(
        items,
        None if contents is None else (known.contents or []) + contents,
        ranges,
        [*known.newest, *prints][-_NEWEST:],
        [*known.frozen, *(freeze(item) for item in newest)][-_NEWEST:],
    )


def store_all(items: Sequence[Any]) -> Reuse:
    """Every item is new."""
    return Reuse((), [None] * len(items))


def reuse_known(
    known: KnownList, items: list[Any], print_: Print, returned: frozenset[int] | None = None
) -> Reuse:
    """Find the items of a list among those of a known one.

    `returned` has the identities of the objects that tasks returned in this step, if these are known.
    """
    same = _count_same(known, items, print_, returned)
    if same == len(known.items):
        return Reuse(known.ranges, [None] * (len(items) - same))
    at = _Candidates(known, same, print_, returned or frozenset())
    return _bounded(Reuse(first(known.ranges, same), [at.find(item) for item in items[same:]]), items)


class _Candidates:
    """The items of a known list from a number on, among which those of a new list may be."""

    def __init__(self, known: KnownList, start: int, print_: Print, returned: frozenset[int]) -> None:
        self._known = known
        self._print = print_
        self._returned = returned
        places = positions(without_first(known.ranges, start))
        self._by_identity = {id(known.items[start + n]): (start + n, at) for n, at in enumerate(places)}
        newest = known.newest[-len(places) :] if places else []
        self._by_bytes = dict(zip(newest, places[-len(newest) :], strict=True)) if newest else {}

    def find(self, item: object) -> int | None:
        """The position of an item, by its identity; of one that was made anew, by its bytes."""
        number, position = self._by_identity.get(id(item), (None, None))
        if (
            number is not None
            and id(item) not in self._returned
            and _is_same(self._known, number, self._print)
        ):
            return position
        # An item counts once, so that a list of equal items does not fall into pieces.
        return self._by_bytes.pop(self._print(item), None) if self._by_bytes else None


def reuse_stored(stored: Mapping[Encoded, int], prints: Sequence[Encoded]) -> Reuse:
    """Find items among stored ones by their bytes."""
    return _bounded(Reuse((), [stored.get(print_) for print_ in prints]), prints)


def _bounded(reuse: Reuse, items: Sequence[Any]) -> Reuse:
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


def _contents(items: list[Any]) -> list[Any] | None:
    try:
        return list(map(_content, items))
    except AttributeError:
        return None


def _count_same(known: KnownList, items: list[Any], print_: Print, returned: frozenset[int] | None) -> int:
    """How many of the first items are the known ones, unchanged."""
    same = _common(known.items, items)
    if known.contents is not None and (returned is None or same <= _SHORT):
        same = min(same, _common(known.contents, _contents(known.items[:same]) or []))
    if returned and not returned <= set(map(id, items[same:])):
        known_ids = list(map(id, items[:same]))
        if not returned.isdisjoint(known_ids):
            same = next(number for number, found in enumerate(known_ids) if found in returned)
    for number in range(len(known.items) - len(known.newest), same):
        if not _is_same(known, number, print_):
            return number
    return same


def _is_same(known: KnownList, number: int, print_: Print) -> bool:
    item = known.items[number]
    if known.contents is not None and getattr(item, "content", None) is not known.contents[number]:
        return False
    newest = number - (len(known.items) - len(known.newest))
    if newest < 0:
        return True
    frozen = known.frozen[newest]
    return freeze(item) == frozen if frozen is not None else print_(item) == known.newest[newest]


def _common(old: list[Any], new: list[Any]) -> int:
    """The length of the common beginning, by identity."""
    if all(map(is_, old, new)):
        return min(len(old), len(new))
    return next(number for number, pair in enumerate(zip(old, new, strict=False)) if pair[0] is not pair[1])


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
        self._returned: OrderedDict[Place, frozenset[int]] = OrderedDict()
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

    def note_returned(self, place: Place, values: Iterable[object]) -> None:
        """Remember which objects a task returned, until the next checkpoint."""
        objects = frozenset(id(part) for value in values for part in _parts(value))
        with self._lock:
            self._returned[place] = self._returned.pop(place, frozenset()) | objects
            while len(self._returned) > _MOST_STEPS:
                self._returned.popitem(last=False)

    def returned(self, place: Place) -> frozenset[int] | None:
        """The identities of the objects that tasks returned since this checkpoint; `None` if unknown."""
        with self._lock:
            return self._returned.get(place)

    def _remove(self, key: tuple[str, str]) -> None:
        known = self._by_thread.pop(key, None)
        if known is not None:
            self._count -= _count_items(known)


def _parts(value: object, depth: int = 2) -> Iterable[object]:
    """The objects that a write may add to a list: it, or its items. Texts and numbers cannot change."""
    inner = getattr(value, "value", None)  # of an `Overwrite`
    if isinstance(value, list | tuple):
        yield from value
    elif value is not None and not isinstance(value, str | bytes | int | float):
        yield value
    further = value.values() if isinstance(value, dict) else [inner] if inner is not None else ()
    for part in further if depth else ():
        yield from _parts(part, depth - 1)


def _count_items(known: KnownCheckpoint) -> int:
    return sum(len(each.items) for each in known.lists.values()) + 1


_alive: "weakref.WeakSet[KnownCheckpoints]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for known in list(_alive):
        known._lock = threading.Lock()  # a thread of the parent may have held the old one


os.register_at_fork(after_in_child=_after_fork_in_child)
