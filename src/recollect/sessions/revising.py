"""What a revision changes: decided over items and texts, carried out elsewhere."""

from collections.abc import Callable
from typing import NamedTuple

from ..errors import InvalidItemError
from ..items import Item, encode_items
from .rewriting import as_stored


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
