"""Windows: the part of a history that a view needs, which is the head and the turns after a cut."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from ..items import Item, is_user_message
from ..items.pairs import call_key
from ..items.shapes import CALL_TYPE_OF_OUTPUT, OUTPUT_TYPE_OF_CALL
from ..sessions.protocol import PositionedItem
from .anchors import Anchor, Mark, digest


@dataclass(frozen=True)
class Scan:
    """The turns and open calls of some items. Immutable: `extended` returns a new scan."""

    count: int = 0
    starts: tuple[int, ...] = ()
    """The index of the first item of each turn."""
    open_calls: frozenset[tuple[str, str]] = frozenset()
    """The types and ids of calls that have no output yet."""
    may_be_torn: bool = False
    """Whether an output may have lost its call to the cut. True if uncertain."""

    def extended(self, items: Sequence[Item]) -> "Scan":
        """The scan of `items`, which start with the items already scanned."""
        if len(items) == self.count:
            return self
        starts, open_calls, torn = list(self.starts), set(self.open_calls), self.may_be_torn
        for index in range(self.count, len(items)):
            item = items[index]
            if item.get("role") == "user" and is_user_message(item):
                starts.append(index)
            elif "type" in item and not torn:
                torn = _tears(item, open_calls)
        return Scan(len(items), tuple(starts), frozenset(open_calls), torn)


def _tears(item: Item, open_calls: set[tuple[str, str]]) -> bool:
    """Whether an item is an output without an open call. A call is added to the open calls."""
    kind = item["type"]
    if not isinstance(kind, str):
        return True
    if kind in OUTPUT_TYPE_OF_CALL:
        open_calls.add((kind, call_key(item)))
    elif kind in CALL_TYPE_OF_OUTPUT:
        called = CALL_TYPE_OF_OUTPUT[kind], call_key(item)
        if called not in open_calls:
            return True
        open_calls.remove(called)
    else:
        return False
    return "caller" in item


class Positions(NamedTuple):
    """The positions of the items of a window, looked up in the rows of the session."""

    rows: Sequence[PositionedItem]
    first: int

    def of(self, index: int) -> int:
        """The position of an item by its index."""
        return self.rows[self.first + index].position

    def after(self, count: int) -> "Positions":
        """The positions without the first `count` items."""
        return Positions(self.rows, self.first + count)


class Numbers(NamedTuple):
    """The numbers of the items, from 1, in place of positions, for a history that is always read whole."""

    first: int

    def of(self, index: int) -> int:
        """The number of an item by its index."""
        return self.first + index + 1

    def after(self, count: int) -> "Numbers":
        """The numbers without the first `count` items."""
        return Numbers(self.first + count)


@dataclass
class Window:
    """A part of a history: the items before the first turn, and the turns after an anchor."""

    head: list[Item]
    items: list[Item]
    """The items of the turns after the anchor."""
    positions: Positions | Numbers
    behind: list[Item] = field(default_factory=list)
    """The items of the turns before the anchor, if the whole history was read."""
    scan: Scan = field(default_factory=Scan)
    """The scan of the first items, if there is one."""

    def __post_init__(self) -> None:
        self.scan = self.scan.extended(self.items)

    @property
    def starts(self) -> tuple[int, ...]:
        """The index in `items` of the first item of each turn."""
        return self.scan.starts

    @property
    def has_positions(self) -> bool:
        """Whether the positions are those of the session, which are never reused."""
        return isinstance(self.positions, Positions)

    def start_of(self, turn: int) -> int:
        """The index of the first item of a turn, counted from 0; the number of items after the last turn."""
        return self.starts[turn] if turn < len(self.starts) else len(self.items)

    def turns(self) -> list[list[Item]]:
        """The items of each turn."""
        return [self.items[start:end] for start, end in pairwise([*self.starts, len(self.items)])]

    def mark_after(self, turns: int, last: Mark) -> Mark:
        """The mark after the first `turns` turns of the window, which continues the mark `last`."""
        end = self.start_of(turns)
        return last.extended(turns, self.positions.of(end - 1), self.items[:end])

    def after(self, turns: int) -> "Window":
        """The window without its first turns, which are now before the cut."""
        end = self.start_of(turns)
        return Window(self.head, self.items[end:], self.positions.after(end), self.behind + self.items[:end])


def split_history(items: list[Item], anchor: Anchor | None = None) -> Window:
    """A whole history as a window after an anchor. The positions are the numbers of the items, from 1."""
    head = end_of_head(items) if anchor is None else anchor.head
    end = head if anchor is None else anchor.cut.position
    return Window(items[:head], items[end:], Numbers(end), items[head:end])


def split_at(items: list[Item], anchor: Anchor) -> Window | None:
    """A whole history as a window after an anchor; `None` if the turns before the cut have changed."""
    window = split_history(items)
    passed = window.items[: window.start_of(anchor.cut.turns)]
    return window.after(anchor.cut.turns) if digest(passed) == anchor.cut.digest else None


def end_of_head(items: Sequence[Item]) -> int:
    """How many items precede the first turn."""
    return next((index for index, item in enumerate(items) if is_user_message(item)), len(items))
