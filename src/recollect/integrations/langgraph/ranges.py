"""Positions in the log of a channel, as ranges from a start up to, not including, an end."""

from collections.abc import Iterable, Sequence
from struct import pack, unpack
from typing import NamedTuple, TypeAlias


class Range(NamedTuple):
    """The positions from `start` up to, not including, `end`."""

    start: int
    end: int


Ranges: TypeAlias = tuple[Range, ...]


def of_positions(positions: Iterable[int]) -> Ranges:
    """The ranges of a sequence of positions, in its order."""
    found: list[Range] = []
    for position in positions:
        if found and found[-1].end == position:
            found[-1] = Range(found[-1].start, position + 1)
        else:
            found.append(Range(position, position + 1))
    return tuple(found)


def join(*parts: Ranges) -> Ranges:
    """One sequence after another. Neighbours that touch become one range."""
    found: list[Range] = []
    for part in parts:
        for following in part:
            if following.start == following.end:
                continue
            if found and found[-1].end == following.start:
                found[-1] = Range(found[-1].start, following.end)
            else:
                found.append(following)
    return tuple(found)


def first(ranges: Ranges, count: int) -> Ranges:
    """The ranges of the first `count` positions."""
    found: list[Range] = []
    for start, end in ranges:
        if count <= 0:
            break
        found.append(Range(start, min(end, start + count)))
        count -= end - start
    return tuple(found)


def last(ranges: Ranges, count: int) -> Ranges:
    """The ranges of the last `count` positions."""
    return without_first(ranges, length(ranges) - count)


def without_first(ranges: Ranges, count: int) -> Ranges:
    """The ranges without their first `count` positions."""
    found: list[Range] = []
    for start, end in ranges:
        skipped = min(max(count, 0), end - start)
        if start + skipped < end:
            found.append(Range(start + skipped, end))
        count -= skipped
    return tuple(found)


def length(ranges: Ranges) -> int:
    """How many positions these are."""
    return sum(end - start for start, end in ranges)


def positions(ranges: Ranges) -> list[int]:
    """The positions, in order."""
    return [position for start, end in ranges for position in range(start, end)]


def union(many: Iterable[Ranges]) -> Ranges:
    """All positions that occur in any of these, ascending."""
    found: list[Range] = []
    for start, end in sorted(each for ranges in many for each in ranges):
        if found and start <= found[-1].end:
            found[-1] = Range(found[-1].start, max(end, found[-1].end))
        else:
            found.append(Range(start, end))
    return tuple(found)


def gaps(ranges: Sequence[Range]) -> list[Range]:
    """The positions before and between ascending ranges. The rest begins at the end of the last range."""
    found, at = [], 0
    for start, end in ranges:
        if at < start:
            found.append(Range(at, start))
        at = end
    return found


def to_bytes(ranges: Ranges) -> bytes:
    """Ranges as a value of a column."""
    numbers = [number for each in ranges for number in each]
    return pack(f"<{len(numbers)}q", *numbers)


def from_bytes(stored: bytes) -> Ranges:
    """The ranges of a column. Raises `struct.error` if it holds something else."""
    numbers = unpack(f"<{len(stored) // 8}q", stored)
    return tuple(Range(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True))
