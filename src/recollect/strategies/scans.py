"""What has to be seen of every item of a window: where turns begin, and whether a cut tore a pair."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..items import Item, is_user_message
from ..items.shapes import CALL_TYPE_OF_OUTPUT, OUTPUT_TYPE_OF_CALL

_CALLS, _OUTPUTS = frozenset(OUTPUT_TYPE_OF_CALL), frozenset(CALL_TYPE_OF_OUTPUT)


@dataclass(frozen=True)
class Scan:
    """What was seen of some items. It is never changed: more items make another."""

    count: int = 0
    starts: tuple[int, ...] = ()
    """Where each turn begins."""
    calls: frozenset[Any] = frozenset()
    """The ids of all calls."""
    may_be_torn: bool = False
    """Whether an output stands without its call. In doubt it is true."""

    def extended(self, items: Sequence[Item]) -> "Scan":
        """The same for these items, of which the first were seen."""
        if len(items) == self.count:
            return self
        starts, calls, torn = list(self.starts), set(self.calls), self.may_be_torn
        for index in range(self.count, len(items)):
            item = items[index]
            if item.get("role") == "user" and is_user_message(item):
                starts.append(index)
            elif "type" in item and not torn:
                torn = _tears(item, calls)
        return Scan(len(items), tuple(starts), frozenset(calls), torn)


def _tears(item: Item, calls: set[Any]) -> bool:
    """Whether this is an output whose call is not there; if it is a call, it is remembered."""
    try:
        if item["type"] in _CALLS:
            calls.add(item.get("call_id") or item.get("id"))
        elif item["type"] in _OUTPUTS:
            call_id = item.get("call_id") or item.get("approval_request_id") or item.get("id")
            return "caller" in item or call_id not in calls
        else:
            return False
    except TypeError:  # a type or an id that is not even hashable
        return True
    return "caller" in item
