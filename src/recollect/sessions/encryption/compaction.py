"""What the Agents SDK's compaction looks for in a session, for one that may or may not have it to give."""

from collections.abc import Callable
from typing import Any

from ...items import Item
from ..protocol import Items, PositionedItem, Session
from ..sdk_compaction import SDKCompaction


class Compactable:
    """Compaction in one step, if the wrapped session can be rewritten and read by position."""

    wrapped: Session

    async def _atomic_replace_items(self, items: Items) -> bool:
        compaction = self._compaction()
        return compaction is not None and await compaction._atomic_replace_items(items)

    async def _get_compaction_snapshot(self, limit: int, *, prune_prefix: Any = None) -> Any:
        compaction = self._compaction()
        if compaction is None:
            return None
        return await compaction._get_compaction_snapshot(limit, prune_prefix=prune_prefix)

    def _compaction(self) -> "_Compaction | None":
        able = hasattr(self.wrapped, "transform_items") and hasattr(self.wrapped, "read_before")
        return _Compaction(self) if able else None


class _Compaction(SDKCompaction):
    def __init__(self, session: Any) -> None:
        self._session = session

    async def transform_items(self, change: Callable[[list[Item]], list[Item]]) -> None:
        await self._session.transform_items(change)

    async def read_before(self, position: int | None, limit: int) -> list[PositionedItem]:
        rows: list[PositionedItem] = await self._session.read_before(position, limit)
        return rows
