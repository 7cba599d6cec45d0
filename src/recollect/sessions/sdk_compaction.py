"""What the Agents SDK's compaction looks for in a session that it wraps.

Without it, the SDK compacts by clearing the session and adding to it anew: metadata is lost, and a crash in
between loses everything. The names are the SDK's own; where it does not know them, nothing happens.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from ..items import Item
from .protocol import Items, PositionedItem


@dataclass(frozen=True)
class _Snapshot:
    """The newest items, whether they are all, and a way to replace the last of them if still there."""

    items: list[Item]
    complete: bool
    replace_suffix: Callable[[int, Items], Awaitable[bool]]


class SDKCompaction:
    """Compaction in one step, for sessions that are `Rewritable` and `Positioned`."""

    async def transform_items(self, change: Callable[[list[Item]], list[Item]]) -> None:
        """Of the session."""
        raise NotImplementedError

    async def read_before(self, position: int | None, limit: int) -> list[PositionedItem]:
        """Of the session."""
        raise NotImplementedError

    async def _atomic_replace_items(self, items: Items) -> bool:
        await self.transform_items(lambda _: items)
        return True

    async def _get_compaction_snapshot(self, limit: int, *, prune_prefix: Any = None) -> _Snapshot | None:
        if prune_prefix is not None:
            return None
        rows = await self.read_before(None, limit)
        complete = not rows or not await self.read_before(rows[0].position, 1)
        seen = [row.item for row in rows]

        async def replace_suffix(start: int, output: Items) -> bool:
            return await self._replace_if_last(seen[start:], output)

        return _Snapshot(seen, complete, replace_suffix)

    async def _replace_if_last(self, expected: list[Item], output: Items) -> bool:
        replaced = False

        def change(items: list[Item]) -> list[Item]:
            nonlocal replaced
            kept = len(items) - len(expected)
            replaced = bool(expected) and items[kept:] == expected
            return [*items[:kept], *output] if replaced else items

        await self.transform_items(change)
        return replaced
