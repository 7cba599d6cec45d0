"""The simplest session: a list in this process. What the contract says, in the fewest lines."""

import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Any

from ..items import Item, decode_item, encode_items
from .protocol import Items, PositionedItem, SessionABC, SessionMetadata
from .sdk_compaction import SDKCompaction
from .settings import check_limit


class InMemorySession(SDKCompaction, SessionABC):
    """A session that lives as long as the object. It keeps items encoded, so that nobody shares them."""

    def __init__(self, session_id: str, session_settings: object = None) -> None:
        super().__init__(session_id, session_settings)
        self._changing = threading.RLock()
        self._rows: list[tuple[int, str]] = []
        self._positions = count(1)
        self._batches: set[str] = set()
        self._metadata = SessionMetadata()
        self._lease: tuple[str, float] | None = None

    async def get_items(self, limit: int | None = None) -> Items:
        """All items, oldest first; with a limit the newest of them."""
        limit = self._effective_limit(limit)
        rows = list(self._rows) if limit is None else _last(self._rows, limit)
        return [row.item for row in self._decoded(rows)]

    async def add_items(self, items: Items) -> None:
        """Append a batch, whole or not at all."""
        self._check_open()
        self._append(encode_items(items))

    async def pop_item(self) -> Any:
        """Remove the newest item and return it, `None` if there is none."""
        self._check_open()
        with self._changing:
            return self._decoded([self._rows.pop()])[0].item if self._rows else None

    async def clear_session(self) -> None:
        """Remove all items and the metadata."""
        self._check_open()
        with self._changing:
            self._rows = []
            self._batches = set()
            self._metadata = SessionMetadata()

    def close(self) -> None:
        """Refuse further calls. Twice is harmless."""
        self._closed = True

    async def transform_items(self, change: Callable[[list[Item]], list[Item]]) -> None:
        """Replace the history by what the pure function `change` makes of it."""
        self._check_open()
        with self._changing:
            encoded = encode_items(change([row.item for row in self._decoded(self._rows)]))
            if encoded != [text for _, text in self._rows]:
                self._rows = []
                self._append(encoded)

    async def replace_items(self, items: Items) -> None:
        """Replace the history by these items."""
        await self.transform_items(lambda _: items)

    async def read_after(self, position: int, limit: int | None = None) -> list[PositionedItem]:
        """The first `limit` items after a position (0: from the start), oldest first."""
        self._check_open()
        return self._decoded([row for row in self._rows if row[0] > position][: check_limit(limit)])

    async def read_before(self, position: int | None, limit: int) -> list[PositionedItem]:
        """The last `limit` items before a position (`None`: from the end), oldest first."""
        self._check_open()
        check_limit(limit)
        before = [row for row in self._rows if position is None or row[0] < position]
        return self._decoded(_last(before, limit))

    async def add_batch(self, items: Items, batch_id: str) -> bool:
        """Append a batch unless one of this id was appended before."""
        self._check_open()
        encoded = encode_items(items)
        with self._changing:
            if batch_id in self._batches:
                return False
            self._batches.add(batch_id)
            self._append(encoded)
            return True

    async def get_metadata(self) -> SessionMetadata:
        """The metadata; empty where none was set."""
        self._check_open()
        return self._metadata

    async def set_metadata(self, metadata: SessionMetadata) -> None:
        """Set the metadata."""
        self._check_open()
        self._metadata = metadata

    async def take_lease(self, owner: str, seconds: float) -> bool:
        """Take or extend the lease; `False` while another owner's runs."""
        self._check_open()
        now = time.monotonic()
        with self._changing:
            if self._lease is not None and self._lease[0] != owner and self._lease[1] > now:
                return False
            self._lease = (owner, now + seconds)
            return True

    async def drop_lease(self, owner: str) -> None:
        """Give the lease up, if it is this owner's."""
        self._check_open()
        if self._lease is not None and self._lease[0] == owner:
            self._lease = None

    def _append(self, encoded: list[str]) -> None:
        with self._changing:
            self._rows += [(next(self._positions), text) for text in encoded]

    @staticmethod
    def _decoded(rows: list[tuple[int, str]]) -> list[PositionedItem]:
        return [
            PositionedItem(position, item)
            for position, text in rows
            if (item := decode_item(text)) is not None
        ]


def _last(rows: list[tuple[int, str]], count: int) -> list[tuple[int, str]]:
    return rows[-count:] if count else []
