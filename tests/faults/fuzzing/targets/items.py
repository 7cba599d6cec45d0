"""Items and their JSON: what is read, written, paired, counted and shortened, whatever they hold."""

import json
import math
from collections.abc import Sequence
from typing import Any

from recollect.errors import InvalidItemError
from recollect.items import (
    decode_item,
    decode_joined,
    encode_items,
    estimate_tokens,
    find_orphans,
    fingerprint,
    group_items,
    newest_whole,
    pair_calls,
    split_turns,
    text_of,
)
from recollect.sessions.changes import as_stored
from recollect.sessions.events.projection import project_new_session_items
from recollect.sessions.history import _compress, items_to_messages, repair_items

from ..supply import Item, Supply

_HALVES = "\ud83d", "\ude00"
_ODD = (
    math.nan,
    math.inf,
    (),
    {1: 2},
    b"bytes",
    {"a"},
    object(),
    10**5000,
    dict([_HALVES]),
    "".join(_HALVES),
)


def check_stored_json(data: bytes) -> None:
    """Any bytes in place of a stored item are an item or none; an item can be stored again as it is."""
    item = decode_item(data)
    if item is not None:
        _check_same(item, decode_item(as_stored(item)))
        _check_encoding(item)
    joined = decode_joined(data)
    if joined is not None and not _has_not_a_number(joined):
        assert joined == json.loads(b"[%b]" % data), "read in one go, it is something else"


def check_items(data: bytes) -> None:
    """An item is stored so that it comes back exactly, or is refused with the reason."""
    supply = Supply(data)
    item: Any = supply.mapping()
    if supply.byte() % 4 == 0:
        item["odd"] = supply.choose(_ODD)
    _check_encoding(item)


def _check_encoding(item: Item) -> None:
    try:
        (text,) = encode_items([item])
    except InvalidItemError:
        return
    _check_same(item, decode_item(text))


def _check_same(item: Item, again: Item | None) -> None:
    assert again is not None, "what was stored is not an item any more"
    assert again == item or _has_not_a_number(item), "what was stored comes back changed"


def _has_not_a_number(value: Any) -> bool:
    """Nothing equals it, not even itself."""
    return "NaN" in json.dumps(value)


def check_histories(data: bytes) -> None:
    """Whatever a history holds, it can be taken apart, told and counted, and no cut leaves an orphan."""
    supply = Supply(data)
    count = supply.number(12)
    items = supply.items()
    assert [item for turn in split_turns(items) for item in turn] == items
    assert len(items_to_messages(items)) <= len(items)
    assert estimate_tokens(items) >= 4 * len(items)
    assert all(isinstance(text_of(item), str) and fingerprint(item) for item in items)
    pairs = pair_calls(items)
    assert all(call < output for call, outputs in pairs.outputs_of.items() for output in outputs)
    check_whole(items, newest_whole(items, count))
    check_whole(items, _compress(items, count, bool(supply.byte() % 2)))
    mended, report = repair_items(items)
    assert not find_orphans(mended)
    assert len(mended) + report.removed == len(items)
    project_new_session_items(items[:count], items)


def check_whole(items: Sequence[Item], kept: Sequence[Item]) -> None:
    """What belongs together was kept, or dropped, together."""
    stays = {id(item) for item in kept}
    fates: dict[int, bool] = {}
    for item, group in zip(items, group_items(items), strict=True):
        assert fates.setdefault(group, id(item) in stays) == (id(item) in stays), "a group was torn"
