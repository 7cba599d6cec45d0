"""Reads the entries of a session in few large replies, and omits corrupt entries."""

import asyncio
import logging
import random
import re
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from ...items import Item, decode_item, decode_joined
from ...sql.garbage import pause_garbage_collection
from ..protocol import PositionedItem
from . import lua

RunReadScript: TypeAlias = Callable[..., Awaitable[list[Any]]]
"""Runs the read script with these arguments: window, argument, limit, page size, separator number."""

logger = logging.getLogger(__name__)

EVERYTHING = 2**53
_PAGE = 20 * lua.CHUNK  # entries: the server serves no other client during a read
_STEP = re.compile(rb"(\d+):(\d+)")
_CHUNKS_AT_ONCE = 4  # decoded before other tasks of the event loop run


class Window(NamedTuple):
    """A part of a history: its valid items and their indexes in the list."""

    items: list[Item]
    indexes: Sequence[int]
    length: int  # including corrupt entries
    positions: bytes

    def positioned(self) -> list[PositionedItem]:
        """Return the items with their positions."""
        places = positions_of(self.indexes, self.positions)
        return [PositionedItem(place, item) for place, item in zip(places, self.items, strict=True)]


def positions_of(indexes: Sequence[int], positions: bytes) -> list[int]:
    """Compute the positions of entries from the `index:offset` pairs of the session."""
    steps = [(0, 1)]  # a session written by the SDK has no pairs
    steps += [(int(index), int(offset)) for index, offset in _STEP.findall(positions)]
    starts = [start for start, _ in steps]
    return [index + steps[bisect_right(starts, index) - 1][1] for index in indexes]


def positions_without(removed: Sequence[int], length: int, positions: bytes) -> str:
    """Compute the `index:offset` pairs after some entries are removed. The others keep their positions.

    The next entry gets the same position as without the removal.
    """
    gone = set(removed)
    left = [index for index in range(length + 1) if index not in gone]
    offsets = [place - index for index, place in enumerate(positions_of(left, positions))]
    steps = (index for index in range(len(offsets)) if index == 0 or offsets[index] != offsets[index - 1])
    return ",".join(f"{index}:{offsets[index]}" for index in steps)


def report_corrupt(index: int) -> None:
    """Log the index of a corrupt entry, and nothing of its content."""
    logger.warning("corrupt entry %d omitted", index)


async def read_window(
    run_read: RunReadScript, window: str, argument: int = 0, limit: int = EVERYTHING
) -> Window:
    """Read the entries of a window as one consistent snapshot."""
    for _ in range(3):
        pages = await _read_pages(run_read, window, argument, limit)
        if pages is not None:
            return _window_of(pages)
    # The history is rewritten all the time: one read that blocks the server is better than endless retries.
    return _window_of([await _read_page(run_read, window, argument, limit, EVERYTHING)])


class _Page(NamedTuple):
    state: tuple[bytes, bytes]
    first: int
    stop: int
    items: list[Item | None]


async def _read_pages(run_read: RunReadScript, window: str, argument: int, limit: int) -> list[_Page] | None:
    """Read a window page by page. Return `None` if the history changed meanwhile, except by appending."""
    pages = [await _read_page(run_read, window, argument, limit, _PAGE)]
    state, first, stop, items = pages[0]
    read = first + len(items)
    if read == stop:
        return pages
    with pause_garbage_collection():
        while read < stop:
            page = await _read_page(run_read, "from", read, stop - read, _PAGE)
            if (page.state, page.stop) != (state, stop):
                return None
            pages.append(page)
            read += len(page.items)
    return pages


async def _read_page(run_read: RunReadScript, window: str, argument: int, limit: int, most: int) -> _Page:
    separator = random.getrandbits(32)  # unpredictable, so that no entry can contain it
    version, positions, first, stop, *chunks = await run_read(window, argument, limit, most, separator)
    items: list[Any] | None = await _decode_joined(chunks, min(int(stop) - int(first), most), separator)
    if items is None:
        version, positions, first, stop, *chunks = await run_read(window, argument, limit, most, "")
        items = [decode_item(entry) for chunk in chunks for entry in chunk]
    return _Page((version, positions), int(first), int(stop), items)


async def _decode_joined(chunks: list[bytes], count: int, separator: int) -> list[Item] | None:
    """Decode joined entries. Return `None` if any of them is invalid."""
    items: list[Item] = []
    for number, chunk in enumerate(chunks):
        values = decode_joined(chunk)
        entries = min(lua.CHUNK, count - len(items))
        if values is None or len(values) != 2 * entries - 1 or values[1::2] != [separator] * (entries - 1):
            return None
        items += values[::2]
        if number % _CHUNKS_AT_ONCE == _CHUNKS_AT_ONCE - 1:
            await asyncio.sleep(0)
    return items if all(type(item) is dict for item in items) else None


def _window_of(pages: list[_Page]) -> Window:
    (_, positions), first, _, entries = pages[0]
    for page in pages[1:]:
        entries += page.items
    items = [item for item in entries if item is not None]
    indexes: Sequence[int] = range(first, first + len(entries))
    if len(items) < len(entries):
        for index, item in enumerate(entries, first):
            if item is None:
                report_corrupt(index)
        indexes = [index for index, item in enumerate(entries, first) if item is not None]
    return Window(items, indexes, len(entries), positions)
