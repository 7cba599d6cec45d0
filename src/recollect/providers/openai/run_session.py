"""The session of a run: the view of the history, and the items of the run until the turn ends."""

from typing import Any

from ...items import Item
from ...sessions.protocol import Items
from ...sessions.sdk_hooks import encode_batch
from ...sessions.wrappers import SessionWrapper
from ...strategies.session import StrategySession


class RunSession(SessionWrapper):
    """Wraps a view for one run. The items that the run adds are in `items`, and nothing is written."""

    def __init__(self, view: StrategySession) -> None:
        super().__init__(view)
        self.view = view
        self.items: list[Item] = []
        self.encoded: list[str] = []

    async def get_items(self, limit: int | None = None, *, wrapper: Any = None) -> Items:
        """The view, followed by the items of the run."""
        items = [*await self.view.get_items(limit, wrapper=wrapper), *self.items]
        return items if limit is None else items[len(items) - min(limit, len(items)) :]

    async def add_items(self, items: Items, *, wrapper: Any = None) -> None:  # noqa: ARG002
        """Keep items for the end of the turn. Raises an error for an item that could not be stored."""
        self.encoded += await encode_batch(items)
        self.items += items

    async def pop_item(self, *, wrapper: Any = None) -> Any:  # noqa: ARG002
        """Take back the newest item of the run, `None` if there is none. The history stays."""
        if not self.items:
            return None
        self.encoded.pop()
        return self.items.pop()

    async def clear_session(self, *, wrapper: Any = None) -> None:  # noqa: ARG002
        """Take back all items of the run. The history stays."""
        self.items.clear()
        self.encoded.clear()
