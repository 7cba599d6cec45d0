"""A part of a history: what stands before the first turn, and the turns after a cut."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from ..items import Item, is_user_message
from ..sessions.protocol import PositionedItem
from .anchors import Anchor, Mark, digest
from .scans import Scan


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
