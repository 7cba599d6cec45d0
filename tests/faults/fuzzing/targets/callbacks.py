"""Input callbacks: what is dropped is dropped whole, and what is sensitive is gone."""

import copy
import json
from typing import Any

from recollect.items import find_orphans, text_of
from recollect.sessions.callbacks import drop_sensitive, limit_history, mask_sensitive

from ..supply import Item, Supply
from .items import check_whole

_WORD = "secret"
_limited = [limit_history(count) for count in range(12)]
_drop: Any = drop_sensitive([_WORD])
_mask: Any = mask_sensitive([_WORD], mask="[gone]")


def check_callbacks(data: bytes) -> None:
    """A limited history has no orphan, and neither dropping nor masking leaves the word that must go."""
    supply = Supply(data)
    limit: Any = _limited[supply.number(12)]
    items = supply.items()
    check_whole(items, limit(items, []))
    dropped = _drop(items, [])
    check_whole(items, dropped)
    assert not any(_WORD in text_of(item).lower() for item in dropped), "a word that must go stays"
    masked = _mask(copy.deepcopy(items), [])
    assert not any(_WORD in _said(item) for item in masked), "a word that must go is shown"
    assert len(find_orphans(masked)) == len(find_orphans(items)), "masking has torn what belongs together"


def _said(item: Item) -> str:
    """What an item says in its fields of text."""
    values = (item.get(name) for name in ("content", "arguments", "output", "text"))
    return json.dumps([value for value in values if isinstance(value, str)]).lower()
