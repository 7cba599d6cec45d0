"""Changes to a whole history.

`rewrite` and `revise` are pure: they compute what a change does to the stored texts, and a backend applies
the result. `change_history` changes a history through a session: in one atomic step if the session is
`Rewritable`, else by clearing it and adding the items again.

A session of the Agents SDK, or of a user, may have only the four methods of the contract. The fallback on
those four is weaker: an item that another writer adds in between can be lost, and so can an item that the
session stores but does not return. A lock keeps these functions from interfering with each other in one event
loop.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple
from weakref import WeakValueDictionary

from ..cancellation import finish_despite_cancellation
from ..errors import HistoryLostError, InvalidItemError
from ..items import Item, encode_items
from .protocol import Items, Rewritable, Session, with_ability


def rewrite(items: list[Item], change: Callable[[list[Item]], list[Item]]) -> tuple[int, list[str]]:
    """How many items stay as they are, and the texts of those that come after them."""
    old = [as_stored(item) for item in items]
    known = {id(item): text for item, text in zip(items, old, strict=True)}
    new = list(_encode_again(change(list(items)), known))
    pairs = enumerate(zip(old, new, strict=False))
    same = next((index for index, (before, after) in pairs if before != after), min(len(old), len(new)))
    return same, new[same:]


def as_stored(item: Item) -> str:
    """An item that was read, as text; others may have stored what we would refuse, such as NaN."""
    try:
        return encode_items([item])[0]
    except InvalidItemError:
        return json.dumps(item)


def _encode_again(items: list[Item], known: dict[int, str]) -> Iterator[str]:
    """The texts of a new history: an item that was there before and has not changed is not refused."""
    for index, item in enumerate(items):
        before = known.get(id(item))
        if before is not None and as_stored(item) == before:
            yield before
            continue
        try:
            yield encode_items([item])[0]
        except InvalidItemError as error:
            raise InvalidItemError(error.reason, index) from error


class Revision(NamedTuple):
    """What becomes of items, which are named by their numbers in the history."""

    texts: dict[int, str]
    """The new texts of those that change."""

    removed: list[int]
    """Those that go."""


def revise(items: list[Item], change: Callable[[list[Item]], list[Item | None]]) -> Revision:
    """What `change` makes of items. It may change them in place: they are compared with what was stored."""
    before = [as_stored(item) for item in items]
    after = change(list(items))
    if len(after) != len(before):
        raise ValueError(f"a revision gave {len(after)} items for {len(before)}: None stands for what goes")
    texts = {
        number: text
        for number, (item, stored) in enumerate(zip(after, before, strict=True))
        if item is not None and (text := _text_of(item, number, stored)) != stored
    }
    return Revision(texts, [number for number, item in enumerate(after) if item is None])


def _text_of(item: Item, number: int, stored: str) -> str:
    """The text of an item; one that others stored and we would refuse, such as NaN, may stay as it is."""
    try:
        return encode_items([item])[0]
    except InvalidItemError as error:
        if _is_still(item, stored):
            return stored
        raise InvalidItemError(error.reason, number) from error


def _is_still(item: Item, stored: str) -> bool:
    try:
        return as_stored(item) == stored
    except (TypeError, ValueError, RecursionError):  # never was JSON
        return False


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
            try:
                await finish_despite_cancellation(call)
            except asyncio.CancelledError as cancelled:
                if isinstance(cancelled.__cause__, HistoryLostError):
                    raise cancelled.__cause__ from None  # it has the only copy of the items
                raise
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
