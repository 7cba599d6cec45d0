"""Changing a whole history: atomically where the session can, else by clearing it and adding to it again.

A session of the Agents SDK, or of a user, has four methods and none that replaces a history. The fallback on
those four is weaker: an item that another writer adds in between may be lost, and so is an item that the
session stores but does not show. A lock keeps these tools from interfering with each other in one event loop.
"""

import asyncio
import sys
from collections.abc import Callable
from weakref import WeakValueDictionary

from ..cancellation import finish_despite_cancellation
from ..errors import HistoryLostError
from ..items import Item
from .protocol import Items, Rewritable, Session, with_ability
from .rewriting import rewrite

_locks: WeakValueDictionary[tuple[int, type, str], asyncio.Lock] = WeakValueDictionary()


class HistoryCounts(tuple[int, int]):
    """How many items there were, and how many there are."""

    atomic: bool
    """Whether the change was one atomic step. If not, an item that others added meanwhile may be lost."""

    def __new__(cls, before: int, after: int, atomic: bool) -> "HistoryCounts":
        """Make the pair."""
        made = super().__new__(cls, (before, after))
        made.atomic = atomic
        return made


class ItemCount(int):
    """The number of items in a new history."""

    atomic: bool
    """Whether the change was one atomic step. If not, an item that others added meanwhile may be lost."""

    def __new__(cls, count: int, atomic: bool) -> "ItemCount":
        """Make the number."""
        made = super().__new__(cls, count)
        made.atomic = atomic
        return made


class RemovedItems(list[Item]):
    """The items that were removed."""

    def __init__(self, items: list[Item], atomic: bool) -> None:
        super().__init__(items)
        self.atomic = atomic
        """Whether the change was one atomic step. If not, an item that others added meanwhile may be lost."""


async def change_history(session: Session, change: Callable[[list[Item]], list[Item]]) -> bool:
    """Replace the history by the result of the pure function `change`; says whether that was one atomic step.

    Raises `HistoryLostError`, which holds the items, if a session without that ability could neither take the
    new history nor take the old one back.
    """
    rewritable = with_ability(session, Rewritable)
    if rewritable is not None:
        await rewritable.transform_items(change)
        return True
    async with _lock_of(session):
        items = await whole_history(session)
        changed: list[Item] = []

        def noted(before: list[Item]) -> list[Item]:
            changed[:] = change(before)
            return changed

        same, rest = rewrite(list(items), noted)  # refuses an invalid item before anything is removed
        if rest or same < len(items):
            keeps_start = not rest and same > 0
            call = _pop(session, len(items) - same) if keeps_start else _replace(session, items, changed)
            await finish_despite_cancellation(call)
    return False


async def replace_history(session: Session, items: Items) -> bool:
    """Replace the history by these items; says whether that was one atomic step."""
    rewritable = with_ability(session, Rewritable)
    if rewritable is None:
        return await change_history(session, lambda _: items)
    await rewritable.replace_items(items)
    return True


async def whole_history(session: Session) -> Items:
    """All items, whatever the settings say; asked for with a limit, a strategy shows no view of them."""
    return await session.get_items(limit=sys.maxsize)


def _lock_of(session: Session) -> asyncio.Lock:
    key = (id(asyncio.get_running_loop()), type(session), session.session_id)
    return _locks.setdefault(key, asyncio.Lock())


async def _pop(session: Session, count: int) -> None:
    """Remove the newest items. The rest is never at risk."""
    for _ in range(count):
        await session.pop_item()


async def _replace(session: Session, before: list[Item], after: list[Item]) -> None:
    if before:
        await session.clear_session()
    try:
        await _add(session, after)
    except Exception:
        await _restore(session, before)
        raise


async def _restore(session: Session, items: list[Item]) -> None:
    try:
        await session.clear_session()
        await _add(session, items)
    except Exception as error:
        raise HistoryLostError(session.session_id, items) from error


async def _add(session: Session, items: list[Item]) -> None:
    if items:
        await session.add_items(items)
