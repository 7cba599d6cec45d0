"""The stored text of an item, and the two methods by which a subclass may change it."""

import asyncio
import json
from typing import Any

from ..errors import MissingAbilityError
from ..items import Item, encode_items
from .protocol import Items

_LONG_BATCH = 1000  # items: encoding more than these would hold up the event loop


async def encode_batch(items: Items) -> list[str]:
    """The JSON of each item. One that cannot be stored exactly is refused."""
    if isinstance(items, list) and len(items) > _LONG_BATCH:
        return await asyncio.to_thread(encode_items, items)
    return encode_items(items)


class ItemTexts:
    """Converts items to texts and back. A subclass may override both methods, as in the Agents SDK.

    Then every item that is stored or read passes through them. Methods that work on stored JSON raise
    `MissingAbilityError`: rewriting, reading by position, and notes.
    """

    async def _serialize_item(self, item: Any) -> str:
        (text,) = encode_items([item])
        return text

    async def _deserialize_item(self, item: str) -> Any:
        """The item of a stored text. `json.JSONDecodeError` means that the text is corrupt."""
        return json.loads(item)

    @property
    def _has_own_texts(self) -> bool:
        """Whether a subclass, or the object itself, overrides one of the two."""
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
        texts = await encode_batch(items)  # refuses what is no item
        if self._has_own_texts:
            texts = [_checked(await self._serialize_item(item)) for item in items]
        return texts

    async def _item_of(self, stored: bytes | str) -> Item | None:
        """The item of a stored text, `None` if it is corrupt. Other errors of the subclass are raised."""
        try:
            item = await self._deserialize_item(stored.decode() if isinstance(stored, bytes) else stored)
        except (json.JSONDecodeError, UnicodeDecodeError):
            return None
        return item if isinstance(item, dict) else None


def _checked(text: object) -> str:
    if not isinstance(text, str):
        raise TypeError(f"_serialize_item() must return a string, not {type(text).__name__}")
    return text
