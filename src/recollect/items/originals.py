"""Items that carry a record of another framework, exactly. Pure functions.

A framework stores records: messages, events or lines of a transcript. Each becomes one or more items, which
the dashboard, search, learning and strategies understand. The first of them carries the record as it was
given, in the field `original`. The others say that they continue it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from .shapes import Item, text_of

FIELD = "original"
ERASED = "[erased]"
_SILENT = "record"  # the type of the item of a record that says nothing
_STRUCTURE = frozenset({"type", "role", "kind", "part_kind", "message_kind", "id", "uuid", "name"})
_LONG = 8  # characters: a shorter text may be a part of an unrelated one

Original: TypeAlias = dict[str, Any]
"""A record of a framework: any JSON object."""


def carry(original: Original, items: Sequence[Item]) -> list[Item]:
    """The items of a record. A record that says nothing is one item of the type `record`."""
    first, *others = [{**item} for item in items] or [{"type": _SILENT}]
    first[FIELD] = {"record": original}
    return [first, *({**item, FIELD: {"continues": True}} for item in others)]


def split_records(items: Sequence[Item]) -> list[list[Item]]:
    """The items of each record. An item that did not come from a framework is alone."""
    groups: list[list[Item]] = []
    for item in items:
        if groups and _note_of(item).get("continues"):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def original_of(items: Sequence[Item]) -> Original | None:
    """The record that the items of one group carry; `None` if they did not come from a framework."""
    found = _note_of(items[0]).get("record")
    return found if isinstance(found, dict) else None


def originals_in(items: Sequence[Item]) -> list[Original]:
    """The records that items carry."""
    return [found for group in split_records(items) if (found := original_of(group)) is not None]


def without_original(item: Item) -> Item:
    """The item as it would be without a framework."""
    return {name: value for name, value in item.items() if name != FIELD}


def says_nothing(item: Item) -> bool:
    """Whether this is the item of a record that has no meaning as items."""
    return item.get("type") == _SILENT and FIELD in item


def blank_original(carrier: Item, said: Item) -> Item:
    """The first item of a record, whose record no longer has the words of an item: they are erased."""
    record = _note_of(carrier).get("record")
    words = [text.strip() for text in (text_of(said), *text_of(said).split("\n")) if text.strip()]
    return {**carrier, FIELD: {"record": _blanked(record, words)}} if isinstance(record, dict) else carrier


def _blanked(value: Any, words: Sequence[str], key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _blanked(each, words, name) for name, each in value.items()}
    if isinstance(value, list):
        return [_blanked(each, words, key) for each in value]
    if not isinstance(value, str) or key in _STRUCTURE:
        return value
    return ERASED if any(_has(value, each) for each in words) else value


def _has(text: str, words: str) -> bool:
    return text.strip() == words or (len(words) > _LONG and words in text)


def _note_of(item: Item) -> dict[str, Any]:
    found = item.get(FIELD)
    return found if isinstance(found, dict) else {}


def change_originals(
    items: list[Item],
    change: Callable[[list[Original]], list[Original]],
    to_items: Callable[[Original], list[Item]],
) -> list[Item]:
    """The items after a change of their records. A record that stays keeps its items as they are."""
    groups = [group for group in split_records(items) if original_of(group) is not None]
    before = [original_of(group) or {} for group in groups]
    known = {id(original): group for original, group in zip(before, groups, strict=True)}

    def changed() -> Iterator[Item]:
        for place, original in enumerate(change(list(before))):
            is_same = place < len(before) and before[place] == original
            same = groups[place] if is_same else known.get(id(original))
            yield from same or carry(original, to_items(original))

    return list(changed())
