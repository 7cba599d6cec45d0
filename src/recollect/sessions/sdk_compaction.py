"""The hooks that the Agents SDK's compaction calls on a session that it wraps.

Without them, the SDK compacts by clearing the session and adding to it anew: metadata is lost, and a crash in
between loses everything. The names are the SDK's own. An SDK that does not know them does not call them.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import dropwhile

from ..items import Item
from .protocol import Items, PositionedItem, own_method


@dataclass(frozen=True)
class Snapshot:
    """The newest items, whether they are all, and how to replace the last of them if they are still there."""

    items: list[Item]
    complete: bool
    replace_suffix: Callable[[int, Items], Awaitable[bool]]


class SDKCompaction:
    """Compaction in one step, for sessions that are `Rewritable` and `Positioned`.

    A subclass that overrides how items are read or written gets no snapshot: the SDK then calls the
    methods of the contract, and with them the overrides.
    """

    async def transform_items(self, change: Callable[[list[Item]], list[Item]]) -> None:
        """Of the session."""
        raise NotImplementedError

    async def read_before(self, position: int | None, limit: int) -> list[PositionedItem]:
        """Of the session."""
        raise NotImplementedError

    async def _atomic_replace_items(self, items: Items) -> bool:
        if own_method(self, "transform_items") is None:
            return False
        await self.transform_items(lambda _: items)
        return True

    async def _get_compaction_snapshot(
        self, limit: int, *, prune_prefix: Callable[[Item], bool] | None = None
    ) -> Snapshot | None:
        """The newest items. A replacement also removes the oldest ones, as long as `prune_prefix` says so."""
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
