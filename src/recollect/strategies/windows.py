"""A part of a history: what stands before the first turn, and the turns after a cut."""

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
    """What was seen of some items. It is never changed: more items make another."""

    count: int = 0
    starts: tuple[int, ...] = ()
    """Where each turn begins."""
    open_calls: frozenset[tuple[str, str]] = frozenset()
    """The kinds and ids of the calls without an output."""
    may_be_torn: bool = False
    """Whether an output stands without a call of its own. In doubt it is true."""

    def extended(self, items: Sequence[Item]) -> "Scan":
        """The same for these items, of which the first were seen."""
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
    """Whether this is an output whose call is not there, or has one already; a call is remembered."""
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
    """Where the items of a window stand: read from the rows when asked for, which is seldom."""

    rows: Sequence[PositionedItem]
    first: int

    def of(self, index: int) -> int:
        """The position of an item."""
        return self.rows[self.first + index].position

    def after(self, count: int) -> "Positions":
        """The same without the first of the items."""
        return Positions(self.rows, self.first + count)


class Numbers(NamedTuple):
    """The numbers of items, from 1, in place of positions: for a history that is always read whole."""

    first: int

    def of(self, index: int) -> int:
        """The number of an item."""
        return self.first + index + 1

    def after(self, count: int) -> "Numbers":
        """The same without the first of the items."""
        return Numbers(self.first + count)


@dataclass
class Window:
    """A part of a history: what stands before the first turn, and the turns after an anchor."""

    head: list[Item]
    items: list[Item]
    """Of the turns after the anchor."""
    positions: Positions | Numbers
    behind: list[Item] = field(default_factory=list)
    """Of the turns before the anchor, where the whole history was read."""
    scan: Scan = field(default_factory=Scan)
    """What was seen of the items, if they were seen before."""

    def __post_init__(self) -> None:
        self.scan = self.scan.extended(self.items)

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each turn begins in `items`."""
        return self.scan.starts

    @property
    def has_positions(self) -> bool:
        """Whether the positions are those of the session, where no other item ever takes one again."""
        return isinstance(self.positions, Positions)

    def start_of(self, turn: int) -> int:
        """Where a turn of the window begins, counted from 0; its end, after the last."""
        return self.starts[turn] if turn < len(self.starts) else len(self.items)

    def turns(self) -> list[list[Item]]:
        """The items of each turn."""
        return [self.items[start:end] for start, end in pairwise([*self.starts, len(self.items)])]

    def mark_after(self, turns: int, last: Mark) -> Mark:
        """The mark that so many turns of the window reach, beyond the last one."""
        end = self.start_of(turns)
        return last.extended(turns, self.positions.of(end - 1), self.items[:end])

    def after(self, turns: int) -> "Window":
        """The window without its first turns, which are behind the cut now."""
        end = self.start_of(turns)
        return Window(self.head, self.items[end:], self.positions.after(end), self.behind + self.items[:end])


def split_history(items: list[Item], anchor: Anchor | None = None) -> Window:
    """A whole history as a window after an anchor; the positions are the numbers of the items, from 1."""
    head = end_of_head(items) if anchor is None else anchor.head
    end = head if anchor is None else anchor.cut.position
    return Window(items[:head], items[end:], Numbers(end), items[head:end])


def split_at(items: list[Item], anchor: Anchor) -> Window | None:
    """A whole history as a window after an anchor, found by its content; `None` if that is not there."""
    window = split_history(items)
    passed = window.items[: window.start_of(anchor.cut.turns)]
    return window.after(anchor.cut.turns) if digest(passed) == anchor.cut.digest else None


def end_of_head(items: Sequence[Item]) -> int:
    """How many items stand before the first turn."""
    return next((index for index, item in enumerate(items) if is_user_message(item)), len(items))
