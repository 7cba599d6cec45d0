"""Hooks of the Agents SDK that our backends support.

`ItemTexts`: a subclass may override `_serialize_item` and `_deserialize_item`, which convert items to stored
text and back.

`SDKCompaction`: the hooks that the SDK's compaction calls on the session it wraps. Without them, the SDK
compacts by clearing the session and adding the items again: metadata is lost, and a crash in between loses
everything. The names are the SDK's own. An SDK version that does not know them does not call them.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import dropwhile
from typing import Any

from ..errors import MissingAbilityError
from ..items import Item, encode_items
from .protocol import Items, PositionedItem, own_method

_LONG_BATCH = 1000  # items: larger batches are encoded in a thread, to keep the event loop free


async def encode_batch(items: Items) -> list[str]:
    """Encode each item as JSON. Raise `InvalidItemError` for an item that cannot be stored exactly."""
    if isinstance(items, list) and len(items) > _LONG_BATCH:
        return await asyncio.to_thread(encode_items, items)
    return encode_items(items)


class ItemTexts:
    """Converts items to texts and back. A subclass may override both methods, as in the Agents SDK.

    Every stored item then passes through them. Methods that work on stored JSON raise `MissingAbilityError`:
    rewriting, reading by position, and notes.
    """

    async def _serialize_item(self, item: Any) -> str:
        (text,) = encode_items([item])
        return text

    async def _deserialize_item(self, item: str) -> Any:
        """Decode a stored text. `json.JSONDecodeError` means that the text is corrupt."""
        return json.loads(item)

    @property
    def _has_own_texts(self) -> bool:
        """Whether a subclass, or the object itself, overrides one of the two methods."""
        overridden = (
            getattr(self._serialize_item, "__func__", None) is not ItemTexts._serialize_item,
            getattr(self._deserialize_item, "__func__", None) is not ItemTexts._deserialize_item,
        )
        return any(overridden)

    def _refuse_own_texts(self, method: str) -> None:
        """Raise `MissingAbilityError` in a method that works on stored JSON."""
        if self._has_own_texts:
            raise MissingAbilityError(self, "stored as JSON", [method], "_serialize_item")

    async def _texts_of(self, items: Items) -> list[str]:
        texts = await encode_batch(items)  # raises for an invalid item
        if self._has_own_texts:
            texts = [_check_serialized(await self._serialize_item(item)) for item in items]
        return texts

    async def _item_of(self, stored: bytes | str) -> Item | None:
        """Decode a stored text. Return `None` if it is corrupt. Other errors of the subclass are raised."""
        try:
            item = await self._deserialize_item(stored.decode() if isinstance(stored, bytes) else stored)
        except (json.JSONDecodeError, UnicodeDecodeError):
            return None
        return item if isinstance(item, dict) else None


def _check_serialized(text: object) -> str:
    if not isinstance(text, str):
        raise TypeError(f"_serialize_item() must return a string, not {type(text).__name__}")
    return text


@dataclass(frozen=True)
class Snapshot:
    """The newest items, whether they are all items, and a function that replaces an unchanged suffix."""

    items: list[Item]
    complete: bool
    replace_suffix: Callable[[int, Items], Awaitable[bool]]


class SDKCompaction:
    """Atomic compaction for sessions that are `Rewritable` and `Positioned`.

    A subclass that overrides how items are read or written gets no snapshot. The SDK then calls the contract
    methods, and so the overrides.
    """

    async def transform_items(self, change: Callable[[list[Item]], list[Item]]) -> None:
        """Implemented by the session."""
        raise NotImplementedError

    async def read_before(self, position: int | None, limit: int) -> list[PositionedItem]:
        """Implemented by the session."""
        raise NotImplementedError

    async def _atomic_replace_items(self, items: Items) -> bool:
        if own_method(self, "transform_items") is None:
            return False
        await self.transform_items(lambda _: items)
        return True

    async def _get_compaction_snapshot(
        self, limit: int, *, prune_prefix: Callable[[Item], bool] | None = None
    ) -> Snapshot | None:
        """Return the newest items.

        A replacement also removes the oldest items while `prune_prefix` is true.
        """
        if own_method(self, "transform_items") is None or own_method(self, "read_before") is None:
            return None
        rows = await self.read_before(None, limit)
        complete = not rows or not await self.read_before(rows[0].position, 1)
        seen = [row.item for row in rows]

        async def replace_suffix(start: int, output: Items) -> bool:
            return await self._replace_if_last(seen[start:], output, prune_prefix)

        return Snapshot(seen, complete, replace_suffix)

    async def _replace_if_last(
        self, expected: list[Item], output: Items, prune_prefix: Callable[[Item], bool] | None
    ) -> bool:
        replaced = False

        def change(items: list[Item]) -> list[Item]:
            nonlocal replaced
            count = len(items) - len(expected)
            replaced = bool(expected) and items[count:] == expected
            if not replaced:
                return items
            older = dropwhile(prune_prefix, items[:count]) if prune_prefix else items[:count]
            return [*older, *output]

        await self.transform_items(change)
        return replaced
