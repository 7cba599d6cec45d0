"""A session in memory: a list in this process. The shortest implementation of the contract."""

import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from ..items import Item, decode_item, encode_items
from ..text_checks import check_text
from .changes import revise
from .protocol import Items, Note, PositionedItem, SessionABC, SessionMetadata, check_metadata
from .sdk_hooks import SDKCompaction
from .settings import check_limit


class InMemorySession(SDKCompaction, SessionABC):
    """A session that exists as long as the object.

    Items are stored encoded, so callers cannot modify them.
    """

    def __init__(self, session_id: str, session_settings: object = None) -> None:
        super().__init__(session_id, session_settings)
        self._changing = threading.RLock()
        self._rows: list[tuple[int, str]] = []
        self._positions = count(1)
        self._batches: set[str] = set()
        self._metadata = SessionMetadata()
        self._notes: dict[str, tuple[int, str]] = {}
        self._lease: tuple[str, float] | None = None

    async def get_items(self, limit: int | None = None) -> Items:
        """Return all items, oldest first, or with a limit only the newest ones."""
        limit = self._effective_limit(limit)
        rows = list(self._rows) if limit is None else _last(self._rows, limit)
        return [row.item for row in self._decoded(rows)]

    async def add_items(self, items: Items) -> None:
        """Append a batch: all of its items or none."""
        self._check_open()
        self._append(encode_items(items))

    async def pop_item(self) -> Any:
        """Remove and return the newest item, or return `None` if there is none."""
        return await self.pop_checked(lambda _: True)

    async def clear_session(self) -> None:
        """Remove all items and the metadata."""
        self._check_open()
        with self._changing:
            self._rows = []
            self._batches = set()
            self._metadata = SessionMetadata()
            self._notes = {}

    def close(self) -> None:
        """Close the session: further calls raise `SessionClosedError`. Idempotent."""
        self._closed = True

    async def transform_items(self, change: Callable[[list[Item]], list[Item]]) -> None:
        """Replace the history by the result of the pure function `change`."""
        self._check_open()
        with self._changing:
            encoded = encode_items(change([row.item for row in self._decoded(self._rows)]))
            if encoded != [text for _, text in self._rows]:
                self._rows = []
                self._append(encoded)

    async def replace_items(self, items: Items) -> None:
        """Replace the history by these items."""
        await self.transform_items(lambda _: items)

    async def revise_items(self, change: Callable[[list[Item]], list[Item | None]]) -> None:
        """Change stored items in place. `None` removes an item."""
        self._check_open()
        with self._changing:
            rows = self._decoded(self._rows)
            texts, removed = revise([row.item for row in rows], change)
            stored = dict(self._rows) | {rows[number].position: text for number, text in texts.items()}
            for number in removed:
                del stored[rows[number].position]
            self._rows = list(stored.items())
            if texts or removed:
                self._notes = {key: (version + 1, "{}") for key, (version, _) in self._notes.items()}

    async def pop_checked(self, accept: Callable[[Item], bool]) -> Any:
        """Remove the newest item that `accept` accepts, and all items after it.

        If it raises, remove nothing.
        """
        self._check_open()
        with self._changing:
            for number, (_, text) in enumerate(reversed(self._rows), start=1):
                item = decode_item(text)
                if item is not None and accept(item):
                    del self._rows[-number:]
                    return item
            self._rows = []
            return None

    async def read_after(self, position: int, limit: int | None = None) -> list[PositionedItem]:
        """Return the first `limit` items after a position (0: from the start), oldest first."""
        self._check_open()
        rows = self._rows[bisect_right(self._rows, position, key=_position) :]
        return self._decoded(rows[: check_limit(limit)])

    async def read_before(self, position: int | None, limit: int) -> list[PositionedItem]:
        """Return the last `limit` items before a position (`None`: from the end), oldest first."""
        self._check_open()
        check_limit(limit)
        end = None if position is None else bisect_left(self._rows, position, key=_position)
        return self._decoded(_last(self._rows[:end], limit))

    async def add_batch(self, items: Items, batch_id: str) -> bool:
        """Append a batch unless one with this id was appended before."""
        self._check_open()
        check_text("batch_id", batch_id)
        encoded = encode_items(items)
        with self._changing:
            if batch_id in self._batches:
                return False
            self._batches.add(batch_id)
            self._append(encoded)
            return True

    async def get_metadata(self) -> SessionMetadata:
        """Return the metadata, empty if none was set."""
        self._check_open()
        return self._metadata

    async def set_metadata(self, metadata: SessionMetadata) -> None:
        """Set the metadata."""
        self._check_open()
        (data,) = encode_items([dict(check_metadata(metadata).data)])
        self._metadata = replace(metadata, data=decode_item(data) or {})

    async def get_note(self, key: str) -> Note | None:
        """Return the note with this key, or `None`."""
        self._check_open()
        check_text("key", key)
        if key not in self._notes:
            return None
        version, text = self._notes[key]
        return Note(version, decode_item(text) or {})

    async def set_note(self, key: str, data: Mapping[str, Any], version: int) -> bool:
        """Set a note if it still has this version (0: it does not exist yet), else return `False`."""
        self._check_open()
        check_text("key", key)
        (text,) = encode_items([dict(data)])
        with self._changing:
            if self._notes.get(key, (0, ""))[0] != version:
                return False
            self._notes[key] = (version + 1, text)
            return True

    async def take_lease(self, owner: str, seconds: float) -> bool:
        """Take or extend the lease. Return `False` while another owner holds it."""
        self._check_open()
        check_text("owner", owner)
        now = time.monotonic()
        with self._changing:
            if self._lease is not None and self._lease[0] != owner and self._lease[1] > now:
                return False
            self._lease = (owner, now + seconds)
            return True

    async def drop_lease(self, owner: str) -> None:
        """Release the lease if this owner holds it."""
        self._check_open()
        check_text("owner", owner)
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


def _position(row: tuple[int, str]) -> int:
    return row[0]


def _last(rows: list[tuple[int, str]], count: int) -> list[tuple[int, str]]:
    return rows[-count:] if count else []
