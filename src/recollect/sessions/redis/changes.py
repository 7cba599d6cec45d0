"""Atomic changes to a history: read it, compute the change here, and let a script apply it.

The script applies the change only if the session has not changed since it was read. Otherwise everything is
repeated. The functions that compute a change may therefore be called several times, and must have no side
effects.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TypeAlias, TypeVar

from ...errors import DatabaseBusyError
from ...items import Item
from ..changes import revise, rewrite
from . import lua
from .handle import Handle, is_empty, length_of
from .windows import Window, positions_without

T = TypeVar("T")
Attempt: TypeAlias = Callable[[], Awaitable[tuple[bool, T]]]
"""Returns whether the change was applied, and its result."""

_LONGEST_RETRY = 30.0  # seconds of retries while others change the history
_LONG = 1000  # items: more than these are processed in a thread, to keep the event loop free
_WIDER = 8  # factor by which a read is widened if it returned too few items


async def transform(handle: Handle, change: Callable[[list[Item]], list[Item]]) -> None:
    """Replace the history by the result of `change`, from the first item that differs."""
    await _retry_until_unchanged(partial(_try_transform, handle, change))


async def revise_in_place(handle: Handle, change: Callable[[list[Item]], list[Item | None]]) -> None:
    """Change entries in place and remove some. All other entries keep their positions."""
    await _retry_until_unchanged(partial(_try_revise, handle, change))


async def pop_checked(handle: Handle, accept: Callable[[Item], bool]) -> Item | None:
    """Remove and return the newest item that `accept` accepts, and remove all entries after it."""
    return await _retry_until_unchanged(partial(_try_pop, handle, accept))


async def pop_entry(handle: Handle, read: Callable[[bytes, int], Awaitable[Item | None]]) -> Item | None:
    """Remove the newest entry that `read` can decode, and the corrupt entries after it. Return its item."""
    return await _retry_until_unchanged(partial(_try_pop_entry, handle, read))


async def _retry_until_unchanged(attempt: Attempt[T]) -> T:
    deadline = time.monotonic() + _LONGEST_RETRY
    while True:
        done, outcome = await attempt()
        if done:
            return outcome
        if time.monotonic() > deadline:
            raise DatabaseBusyError(
                f"other writers changed the session for {_LONGEST_RETRY:g} s; nothing was written"
            )
        await asyncio.sleep(random.uniform(0, 0.01))


async def _try_transform(handle: Handle, change: Callable[[list[Item]], list[Item]]) -> tuple[bool, None]:
    state = await handle.state()
    before = await _look(handle, state)
    same, rest = await _compute(partial(rewrite, before.items, change), before)
    if same == len(before.items) and not rest:
        return True, None
    return await _cut(handle, state, before.indexes[same - 1] + 1 if same else 0, *rest), None


async def _try_revise(handle: Handle, change: Callable[[list[Item]], list[Item | None]]) -> tuple[bool, None]:
    state = await handle.state()
    before = await _look(handle, state)
    revision = await _compute(partial(revise, before.items, change), before)
    if not revision.texts and not revision.removed:
        return True, None
    removed = [before.indexes[number] for number in revision.removed]
    arguments = (
        f"{random.getrandbits(128):x}",  # identifies the revision, and equals no entry
        positions_without(removed, before.length, before.positions),
        _join_indexes(removed),
        _join_indexes(before.indexes[number] for number in revision.texts),
    )
    keys = handle.keys[:2]
    return bool(await handle.write(lua.REVISE, keys, state, *arguments, *revision.texts.values())), None


async def _try_pop(handle: Handle, accept: Callable[[Item], bool]) -> tuple[bool, Item | None]:
    state = await handle.state()
    width = 1
    while True:
        tail = await _look(handle, state, width)
        for index, item in zip(reversed(tail.indexes), reversed(tail.items), strict=True):
            if accept(item):
                return await _cut(handle, state, index), item
        if len(tail.items) < width:
            return not tail.length or await _cut(handle, state, 0), None
        width *= _WIDER


async def _try_pop_entry(
    handle: Handle, read: Callable[[bytes, int], Awaitable[Item | None]]
) -> tuple[bool, Item | None]:
    state = await handle.state()
    if is_empty(state):
        return True, None
    entries = await handle.newest_entries(1)
    item = await read(entries[0], -1) if entries else None
    removed = await _cut(handle, state, length_of(state) - 1)
    return removed and item is not None, item


async def _look(handle: Handle, state: bytes, limit: int | None = None) -> Window:
    """Read the newest items of a session that was in this state.

    An empty session is not read: it may be filled and cleared meanwhile, and would then have the same state.
    """
    if is_empty(state):
        return Window([], (), 0, b"")
    return await handle.look("newest", limit=limit)


async def _compute(decide: Callable[[], T], about: Window) -> T:
    return await asyncio.to_thread(decide) if len(about.items) > _LONG else decide()


async def _cut(handle: Handle, state: bytes, kept: int, *rest: str) -> bool:
    """Keep so many entries and append the rest. Return `False` if the session has changed since."""
    return bool(await handle.write(lua.REWRITE, handle.keys[:2], state, kept, *rest))


def _join_indexes(indexes: Iterable[int]) -> str:
    return ",".join(map(str, indexes))
