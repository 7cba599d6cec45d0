"""Taking the newest item off, without losing one that cannot be opened."""

import asyncio
from collections.abc import Callable
from typing import Any

from ...errors import WrongKeyError
from ...items import Item
from ..protocol import own_method
from .expiry import earliest
from .reading import LOCKED, PLAIN, Reader, why_left_out


async def pop_checked(reader: Reader, accept: Callable[[Item], bool]) -> Any:
    """Remove the newest item that `accept` takes, and those after it; nothing at all where it raises."""
    wrapped: Any = reader.wrapped
    taken: Item | None = None

    def accept_stored(stored: Item) -> bool:
        nonlocal taken
        taken = _item_in(reader, stored)
        return taken is not None and accept(taken)

    return None if await wrapped.pop_checked(accept_stored) is None else taken


async def pop_item(reader: Reader, **context: Any) -> Any:
    """Remove the newest item and return it; expired ones on the way go too."""
    if own_method(reader.wrapped, "pop_checked") is not None:
        return await pop_checked(reader, lambda _: True)
    while newest := await reader.wrapped.get_items(1, **context):
        _item_in(reader, newest[0])
        stored = await reader.wrapped.pop_item(**context)
        item = None if stored is None else await _take_or_put_back(reader, stored, context)
        if stored is None or item is not None:
            return item
    return None


async def _take_or_put_back(reader: Reader, stored: Item, context: dict[str, Any]) -> Item | None:
    """What is in an item that was popped: since the look at the newest, another may have been added."""
    try:
        return _item_in(reader, stored)
    except WrongKeyError:
        await asyncio.shield(asyncio.ensure_future(reader.wrapped.add_items([stored], **context)))
        raise


def _item_in(reader: Reader, stored: Item) -> Item | None:
    """The item in an envelope, `None` if it has expired or is none; where that cannot be told, an error."""
    opened = reader.vault.open([stored])
    reason = why_left_out(opened, 0, earliest(reader.ttl))
    if reason == PLAIN:
        raise reader.wrong_key("its newest item is not encrypted")
    if reason == LOCKED and opened.ciphers[0] is None:
        raise reader.wrong_key("no key opens its newest item")
    return opened.items[0] if reason is None else None
