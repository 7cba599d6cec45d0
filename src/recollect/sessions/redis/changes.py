"""Changing a history in one step: it is read, the change is decided here, and a script carries it out.

The script does so only if the session is still as it was when it was read; else all begins anew. So whatever
decides may be called several times, and must not have effects of its own.
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
"""Says whether it was carried out, and what came of it."""

_PATIENCE = 30.0  # seconds to try for, while others change the history
_LONG = 1000  # items: deciding about more than these would hold up the event loop
_WIDER = 8  # times as many items are looked at, where those looked at are not enough


async def transform(handle: Handle, change: Callable[[list[Item]], list[Item]]) -> None:
    """Replace the history by what `change` makes of it, from the first item that differs."""
    await _until_undisturbed(partial(_try_to_transform, handle, change))


async def revise_in_place(handle: Handle, change: Callable[[list[Item]], list[Item | None]]) -> None:
    """Change entries where they stand, and take out those that go; all others keep their positions."""
    await _until_undisturbed(partial(_try_to_revise, handle, change))


async def pop_checked(handle: Handle, accept: Callable[[Item], bool]) -> Item | None:
    """Take the newest item off that `accept` takes, and all after it."""
    return await _until_undisturbed(partial(_try_to_pop, handle, accept))


async def pop_entry(handle: Handle, read: Callable[[bytes, int], Awaitable[Item | None]]) -> Item | None:
    """Take the newest entry off that `read` makes an item of, and the corrupt ones after it."""
    return await _until_undisturbed(partial(_try_to_pop_entry, handle, read))


async def _until_undisturbed(attempt: Attempt[T]) -> T:
    deadline = time.monotonic() + _PATIENCE
    while True:
        done, outcome = await attempt()
        if done:
            return outcome
        if time.monotonic() > deadline:
            raise DatabaseBusyError(f"others changed the session for {_PATIENCE:g} s; nothing was written")
        await asyncio.sleep(random.uniform(0, 0.01))


async def _try_to_transform(handle: Handle, change: Callable[[list[Item]], list[Item]]) -> tuple[bool, None]:
    state = await handle.state()
    before = await _look(handle, state)
    same, rest = await _decide(partial(rewrite, before.items, change), before)
    if same == len(before.items) and not rest:
        return True, None
    return await _cut(handle, state, before.indexes[same - 1] + 1 if same else 0, *rest), None


async def _try_to_revise(
    handle: Handle, change: Callable[[list[Item]], list[Item | None]]
) -> tuple[bool, None]:
    state = await handle.state()
    before = await _look(handle, state)
    revision = await _decide(partial(revise, before.items, change), before)
    if not revision.texts and not revision.removed:
        return True, None
    removed = [before.indexes[number] for number in revision.removed]
    arguments = (
        f"{random.getrandbits(128):x}",  # names the revision, and is like nobody's entry
        positions_without(removed, before.length, before.positions),
        _listed(removed),
        _listed(before.indexes[number] for number in revision.texts),
    )
    keys = handle.keys[:2]
    return bool(await handle.write(lua.REVISE, keys, state, *arguments, *revision.texts.values())), None


async def _try_to_pop(handle: Handle, accept: Callable[[Item], bool]) -> tuple[bool, Item | None]:
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


async def _try_to_pop_entry(
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
    """The newest items of a session that was in this state.

    One that is empty is not looked at: it may be filled and cleared meanwhile, and is then as it was before.
    """
    if is_empty(state):
        return Window([], (), 0, b"")
    return await handle.look("newest", limit=limit)


async def _decide(decide: Callable[[], T], about: Window) -> T:
    return await asyncio.to_thread(decide) if len(about.items) > _LONG else decide()


async def _cut(handle: Handle, state: bytes, kept: int, *rest: str) -> bool:
    """Leave so many entries and add the rest, unless the session is not what it was."""
    return bool(await handle.write(lua.REWRITE, handle.keys[:2], state, kept, *rest))


def _listed(indexes: Iterable[int]) -> str:
    return ",".join(map(str, indexes))
