"""What a rewriting changes: decided over items and texts, carried out elsewhere."""

import json
from collections.abc import Callable, Iterator

from ..errors import InvalidItemError
from ..items import Item, encode_items


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
