"""Reading a session's entries: in few large replies, with corrupt ones left out."""

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

Ask: TypeAlias = Callable[..., Awaitable[list[Any]]]
"""Runs the reading script with these arguments: window, argument, limit, most, number between."""

logger = logging.getLogger(__name__)

EVERYTHING = 2**53
_PAGE = 20 * lua.CHUNK  # entries: a server does nothing else while it hands them out
_STEP = re.compile(rb"(\d+):(\d+)")
_CHUNKS_AT_ONCE = 4  # what is decoded before the event loop gets its turn


class Window(NamedTuple):
    """A part of a history: its valid items, and where in the list they stand."""

    items: list[Item]
    indexes: Sequence[int]
    length: int  # with the corrupt entries
    positions: bytes

    def positioned(self) -> list[PositionedItem]:
        """The items with their positions."""
        places = positions_of(self.indexes, self.positions)
        return [PositionedItem(place, item) for place, item in zip(places, self.items, strict=True)]


def positions_of(indexes: Sequence[int], positions: bytes) -> list[int]:
    """The positions of entries, by the `index:offset` pairs that a session holds."""
    steps = [(0, 1)]  # sessions of the SDK hold none
    steps += [(int(index), int(offset)) for index, offset in _STEP.findall(positions)]
    starts = [start for start, _ in steps]
    return [index + steps[bisect_right(starts, index) - 1][1] for index in indexes]


def positions_without(removed: Sequence[int], length: int, positions: bytes) -> str:
    """The `index:offset` pairs of so many entries when some are gone: the others keep their positions.

    What is added next gets the position that it would have had.
    """
    gone = set(removed)
    left = [index for index in range(length + 1) if index not in gone]
    offsets = [place - index for index, place in enumerate(positions_of(left, positions))]
    steps = (index for index in range(len(offsets)) if index == 0 or offsets[index] != offsets[index - 1])
    return ",".join(f"{index}:{offsets[index]}" for index in steps)


def report_corrupt(index: int) -> None:
    """Say which entry cannot be read, and nothing of what is in it."""
    logger.warning("entry %d is corrupt and was left out", index)


async def read_window(ask: Ask, window: str, argument: int = 0, limit: int = EVERYTHING) -> Window:
    """The entries of a window, all as they were at one moment."""
    for _ in range(3):
        pages = await _read_pages(ask, window, argument, limit)
        if pages is not None:
            return _window_of(pages)
    # It is rewritten all the time: better to hold up the server than to go on without end.
    return _window_of([await _read_page(ask, window, argument, limit, EVERYTHING)])


class _Page(NamedTuple):
    state: tuple[bytes, bytes]
    first: int
    stop: int
    items: list[Item | None]


async def _read_pages(ask: Ask, window: str, argument: int, limit: int) -> list[_Page] | None:
    """A window page by page; `None` if anything but adding happened meanwhile."""
    pages = [await _read_page(ask, window, argument, limit, _PAGE)]
    state, first, stop, items = pages[0]
    read = first + len(items)
    if read == stop:
        return pages
    with pause_garbage_collection():
        while read < stop:
            page = await _read_page(ask, "from", read, stop - read, _PAGE)
            if (page.state, page.stop) != (state, stop):
                return None
            pages.append(page)
            read += len(page.items)
    return pages


async def _read_page(ask: Ask, window: str, argument: int, limit: int, most: int) -> _Page:
    between = random.getrandbits(32)  # what nobody foresees cannot stand in an entry to feign several
    version, positions, first, stop, *chunks = await ask(window, argument, limit, most, between)
    items: list[Any] | None = await _decode_joined(chunks, min(int(stop) - int(first), most), between)
    if items is None:
        version, positions, first, stop, *chunks = await ask(window, argument, limit, most, "")
        items = [decode_item(entry) for chunk in chunks for entry in chunk]
    return _Page((version, positions), int(first), int(stop), items)


async def _decode_joined(chunks: list[bytes], count: int, between: int) -> list[Item] | None:
    """The items of joined entries; `None` if anything in them is not as it should be."""
    items: list[Item] = []
    for number, chunk in enumerate(chunks):
        values = decode_joined(chunk)
        entries = min(lua.CHUNK, count - len(items))
        if values is None or len(values) != 2 * entries - 1 or values[1::2] != [between] * (entries - 1):
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
