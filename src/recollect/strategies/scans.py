"""What has to be seen of every item of a window: where turns begin, and whether a cut tore a pair."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..items import Item, is_user_message
from ..items.pairs import call_key
from ..items.shapes import CALL_TYPE_OF_OUTPUT, OUTPUT_TYPE_OF_CALL


@dataclass(frozen=True)
class Scan:
    """What was seen of some items. It is never changed: more items make another."""

    count: int = 0
    starts: tuple[int, ...] = ()
    """Where each turn begins."""
    open_calls: frozenset[tuple[str, str]] = frozenset()
    """The kinds and ids of the calls without an output."""
    may_be_torn: bool = False
    """Whether an output stands without a call of its own. In doubt it is true."""

    def extended(self, items: Sequence[Item]) -> "Scan":
        """The same for these items, of which the first were seen."""
        if len(items) == self.count:
            return self
        starts, open_calls, torn = list(self.starts), set(self.open_calls), self.may_be_torn
        for index in range(self.count, len(items)):
            item = items[index]
            if item.get("role") == "user" and is_user_message(item):
                starts.append(index)
            elif "type" in item and not torn:
                torn = _tears(item, open_calls)
        return Scan(len(items), tuple(starts), frozenset(open_calls), torn)


def _tears(item: Item, open_calls: set[tuple[str, str]]) -> bool:
    """Whether this is an output whose call is not there, or has one already; a call is remembered."""
    kind = item["type"]
    if not isinstance(kind, str):
        return True
    if kind in OUTPUT_TYPE_OF_CALL:
        open_calls.add((kind, call_key(item)))
    elif kind in CALL_TYPE_OF_OUTPUT:
        called = CALL_TYPE_OF_OUTPUT[kind], call_key(item)
        if called not in open_calls:
            return True
        open_calls.remove(called)
    else:
        return False
    return "caller" in item
