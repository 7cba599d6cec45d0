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
    """Return how many items at the start stay unchanged, and the texts of all items after those."""
    old = [as_stored(item) for item in items]
    known = {id(item): text for item, text in zip(items, old, strict=True)}
    new = list(_encode_again(change(list(items)), known))
    pairs = enumerate(zip(old, new, strict=False))
    same = next((index for index, (before, after) in pairs if before != after), min(len(old), len(new)))
    return same, new[same:]


def as_stored(item: Item) -> str:
    """Return the text of an item that was read.

    Other software may have stored values we refuse, such as NaN.
    """
    try:
        return encode_items([item])[0]
    except InvalidItemError:
        return json.dumps(item)


def _encode_again(items: list[Item], known: dict[int, str]) -> Iterator[str]:
    """Encode the items of a new history. An item that was there before and is unchanged is never refused."""
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
    """The result of a revision. Items are named by their index in the history."""

    texts: dict[int, str]
    """The new texts of the changed items."""

    removed: list[int]
    """The removed items."""


def revise(items: list[Item], change: Callable[[list[Item]], list[Item | None]]) -> Revision:
    """Compute the revision that `change` makes. It may change items in place: stored texts are compared."""
    before = [as_stored(item) for item in items]
    after = change(list(items))
    if len(after) != len(before):
        raise ValueError(
            f"a revision returned {len(after)} entries for {len(before)} items: return None to remove an item"
        )
    texts = {
        number: text
        for number, (item, stored) in enumerate(zip(after, before, strict=True))
        if item is not None and (text := _text_of(item, number, stored)) != stored
    }
    return Revision(texts, [number for number, item in enumerate(after) if item is None])


def _text_of(item: Item, number: int, stored: str) -> str:
    """Encode an item.

    An unchanged item that other software stored may contain values we refuse, such as NaN.
    """
    try:
        return encode_items([item])[0]
    except InvalidItemError as error:
        if _is_unchanged(item, stored):
            return stored
        raise InvalidItemError(error.reason, number) from error


def _is_unchanged(item: Item, stored: str) -> bool:
    try:
        return as_stored(item) == stored
    except (TypeError, ValueError, RecursionError):  # it is not JSON
        return False


_locks: WeakValueDictionary[tuple[int, type, str], asyncio.Lock] = WeakValueDictionary()


class HistoryCounts(tuple[int, int]):
    """The number of items before and after a change."""

    atomic: bool
    """Whether the change was one atomic step. If not, an item added by others meanwhile may be lost."""

    def __new__(cls, before: int, after: int, atomic: bool) -> "HistoryCounts":
        """Create the pair."""
        counts = super().__new__(cls, (before, after))
        counts.atomic = atomic
        return counts


class ItemCount(int):
    """The number of items in a new history."""

    atomic: bool
    """Whether the change was one atomic step. If not, an item added by others meanwhile may be lost."""

    def __new__(cls, count: int, atomic: bool) -> "ItemCount":
        """Create the number."""
        number = super().__new__(cls, count)
        number.atomic = atomic
        return number


class RemovedItems(list[Item]):
    """The items that were removed."""

    def __init__(self, items: list[Item], atomic: bool) -> None:
        super().__init__(items)
        self.atomic = atomic
        """Whether the change was one atomic step. If not, an item added by others meanwhile may be lost."""


async def change_history(session: Session, change: Callable[[list[Item]], list[Item]]) -> bool:
    """Replace the history by the result of the pure function `change`. Return whether that was atomic.

    Raises `HistoryLostError`, which contains the items, if a session that is not `Rewritable` was cleared and
    then accepted neither the new items nor the old ones.
    """
    rewritable = with_ability(session, Rewritable)
    if rewritable is not None:
        await rewritable.transform_items(change)
        return True
    async with _lock_of(session):
        items = await whole_history(session)
        changed: list[Item] = []

        def record_and_change(before: list[Item]) -> list[Item]:
            changed[:] = change(before)
            return changed

        same, rest = rewrite(
            list(items), record_and_change
        )  # refuses an invalid item before anything is removed
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
    """Replace the history by these items. Return whether that was one atomic step."""
    rewritable = with_ability(session, Rewritable)
    if rewritable is None:
        return await change_history(session, lambda _: items)
    await rewritable.replace_items(items)
    return True


async def whole_history(session: Session) -> Items:
    """Read all items. The explicit limit overrides the settings, and a strategy then applies no view."""
    return await session.get_items(limit=sys.maxsize)


def _lock_of(session: Session) -> asyncio.Lock:
    key = (id(asyncio.get_running_loop()), type(session), session.session_id)
    return _locks.setdefault(key, asyncio.Lock())


async def _pop(session: Session, count: int) -> None:
    """Remove the newest items one by one. The items before them are never at risk."""
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
