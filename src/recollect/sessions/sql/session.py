"""A session on SQL: the contract and the abilities, whatever the database."""

import asyncio
import json
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from ...items import Item, decode_item, decode_joined, encode_items
from ..protocol import Items, PositionedItem, SessionABC, SessionMetadata
from ..rewriting import rewrite
from ..sdk_compaction import SDKCompaction
from ..settings import check_limit
from .queries import Queries
from .scripts import Engine, MakeScript, Row, Script, Statement, T

logger = logging.getLogger(__name__)

_LARGE = 1_000_000  # bytes of items
_LONG_BATCH = 1000  # items: encoding more than these would hold up the event loop


class SQLSession(SDKCompaction, SessionABC):
    """What sessions on SQL share. A subclass brings an engine and the statements in its dialect."""

    def __init__(
        self,
        session_id: str,
        engine: Engine,
        queries: Queries,
        session_settings: Any,
        metadata: SessionMetadata | None,
    ) -> None:
        super().__init__(session_id, session_settings)
        self._engine = engine
        self._queries = queries
        self._new_metadata = None if metadata is None else _metadata_columns(metadata)
        self._is_long = False  # the history was found too long or too large to be read in one piece

    # --- the contract ---

    async def get_items(self, limit: int | None = None) -> Items:
        """All items, oldest first; with a limit the newest of them."""
        limit = self._effective_limit(limit)
        if limit == 0:
            return []
        await self._engine.prepare(self._queries.tables)
        if limit is None or limit <= self._queries.short:
            items = await self._read_in_one_piece(limit)
            if items is not None:
                return items
        if limit is None:
            return await self._engine.fetch(self._queries.all_items, (self.session_id,), _items_of)
        return [row.item for row in await self._newest(self._queries.newest_items, (), limit)]

    async def add_items(self, items: Items) -> None:
        """Append a batch, whole or not at all, and make the session if it is not there."""
        self._check_open()
        encoded = await _encoded(items)
        if encoded:
            await self._write(partial(self._append, encoded))

    async def pop_item(self) -> Any:
        """Remove the newest item and return it, `None` if there is none. Corrupt rows on the way go too."""
        return await self._write(self._pop)

    async def clear_session(self) -> None:
        """Remove all items, and the session with its metadata."""
        await self._write(self._clear)

    # --- abilities ---

    async def transform_items(self, change: Callable[[list[Item]], list[Item]]) -> None:
        """Replace the history by what the pure function `change` makes of it; nobody comes in between."""
        await self._write(partial(self._transform, change))

    async def replace_items(self, items: Items) -> None:
        """Replace the history by these items."""
        await _encoded(items)  # a bad one is refused here, before anything else is done
        await self.transform_items(lambda _: items)

    async def read_after(self, position: int, limit: int | None = None) -> list[PositionedItem]:
        """The first `limit` items after a position (0: from the start), oldest first."""
        self._check_open()
        check_limit(limit)
        await self._engine.prepare(self._queries.tables)
        return await self._window(self._queries.items_after, (position,), limit)

    async def read_before(self, position: int | None, limit: int) -> list[PositionedItem]:
        """The last `limit` items before a position (`None`: from the end), oldest first."""
        self._check_open()
        check_limit(limit)
        if position is None:
            return await self._newest(self._queries.newest_items, (), limit)
        return await self._newest(self._queries.items_before, (position,), limit)

    async def add_batch(self, items: Items, batch_id: str) -> bool:
        """Append a batch unless one of this id was appended within the last day."""
        self._check_open()
        return await self._write(partial(self._append_once, await _encoded(items), batch_id))

    async def get_metadata(self) -> SessionMetadata:
        """The metadata; empty where none was set."""
        self._check_open()
        await self._engine.prepare(self._queries.tables)
        return await self._engine.fetch(self._queries.get_metadata, (self.session_id,), _metadata_of)

    async def set_metadata(self, metadata: SessionMetadata) -> None:
        """Set the metadata, and make the session if it is not there."""
        await self._write(partial(self._describe, _metadata_columns(metadata)))

    async def take_lease(self, owner: str, seconds: float) -> bool:
        """Take or extend the lease; `False` while another owner's runs."""
        return await self._write(partial(self._take_lease, owner, float(seconds)))

    async def drop_lease(self, owner: str) -> None:
        """Give the lease up, if it is this owner's."""
        await self._write(partial(self._drop_lease, owner))

    # --- how reads are made ---

    async def _read_in_one_piece(self, limit: int | None) -> Items | None:
        """A short history as one row; `None` if it is longer, or if not all of it is as it should be."""
        if self._is_long:
            return None
        width = self._queries.short + 1 if limit is None else limit
        size, items = await self._engine.fetch(
            self._queries.newest_joined, (self.session_id, width), _items_of_joined
        )
        longer = limit is None and items is not None and len(items) == width
        # The next read need not find out again; and what is large must not be read in one step.
        self._is_long = longer or size > _LARGE
        return None if longer else items

    async def _newest(self, sql: str, parameters: tuple[int, ...], limit: int) -> list[PositionedItem]:
        if limit == 0:
            return []
        await self._engine.prepare(self._queries.tables)
        return (await self._window(sql, parameters, limit))[::-1]

    async def _window(self, sql: str, parameters: tuple[int, ...], limit: int | None) -> list[PositionedItem]:
        """The first `limit` valid rows of a query: a wider look is taken where corrupt rows stand between."""
        width = _EVERYTHING if limit is None else limit
        while True:
            rows, found = await self._engine.fetch(sql, (self.session_id, *parameters, width), _decoded)
            if limit is None or len(found) >= limit or rows < width:
                return found[:limit]
            width *= 2

    # --- how writes are made: scripts, which the engine runs in a transaction ---

    async def _write(self, make_script: MakeScript[T]) -> T:
        self._check_open()
        await self._engine.prepare(self._queries.tables)
        return await self._engine.write(make_script)

    def _append(self, encoded: list[str]) -> Script[None]:
        for statement in self._queries.append(self.session_id, encoded, self._new_metadata):  # noqa: UP028
            yield statement

    def _append_once(self, encoded: list[str], batch_id: str) -> Script[bool]:
        yield Statement(self._queries.touch_session, (self.session_id,))
        yield Statement(self._queries.forget_old_batches, (self.session_id,))
        if not (yield Statement(self._queries.remember_batch, (self.session_id, batch_id))):
            return False
        yield from self._append(encoded)
        return True

    def _pop(self) -> Script[Item | None]:
        yield from self._lock()
        while rows := (yield Statement(self._queries.pop_item, (self.session_id,))):
            item = decode_item(rows[0][1])
            if item is not None:
                return item
            _report_corrupt(rows[0][0])
        return None

    def _clear(self) -> Script[None]:
        yield from self._lock()
        yield Statement(self._queries.delete_items_after, (self.session_id, 0))
        yield Statement(self._queries.delete_session, (self.session_id,))

    def _transform(self, change: Callable[[list[Item]], list[Item]]) -> Script[None]:
        """Rewrite from the first item that differs: an undo of one turn touches one turn."""
        yield from self._lock(make=True)
        rows = yield Statement(self._queries.all_items, (self.session_id,))
        _, before = _decoded(rows)
        same, rest = rewrite([row.item for row in before], change)
        if same == len(before) and not rest:
            return
        last_kept = before[same - 1].position if same else 0
        yield Statement(self._queries.delete_items_after, (self.session_id, last_kept))
        yield Statement(self._queries.touch_session, (self.session_id,))
        if rest:
            yield from self._append(rest)

    def _lock(self, make: bool = False) -> Script[None]:
        """Keep others from changing the session, where a transaction does not; `make` it to lock it."""
        if self._queries.lock:
            rows = yield Statement(self._queries.lock_session, (self.session_id,))
            if not rows and make:
                yield Statement(self._queries.touch_session, (self.session_id,))

    def _describe(self, columns: tuple[Any, ...]) -> Script[None]:
        yield Statement(self._queries.touch_session, (self.session_id,))
        yield Statement(self._queries.set_metadata, (self.session_id, *columns))

    def _take_lease(self, owner: str, seconds: float) -> Script[bool]:
        parameters = (self.session_id, owner, seconds)
        return bool((yield Statement(self._queries.take_lease, parameters, alone=True)))

    def _drop_lease(self, owner: str) -> Script[None]:
        yield Statement(self._queries.drop_lease, (self.session_id, owner), alone=True)


_EVERYTHING = 2**62  # rows: no limit at all


async def _encoded(items: Items) -> list[str]:
    if isinstance(items, list) and len(items) > _LONG_BATCH:
        return await asyncio.to_thread(encode_items, items)
    return encode_items(items)


def _items_of_joined(rows: list[Row]) -> tuple[int, Items | None]:
    """The size of a joined row and its items, oldest first; `None` if anything is not as it should be."""
    count, joined = rows[0]
    if count == 0:
        return 0, []
    values = decode_joined(joined)
    if values is None or len(values) != 2 * count:
        return len(joined), None
    items = values[::-2]
    as_it_should_be = all(type(item) is dict for item in items) and all(type(n) is int for n in values[::2])
    return len(joined), items if as_it_should_be else None


def _items_of(rows: list[Row]) -> Items:
    items = [decode_item(stored) for _, stored in rows]
    if None in items:
        return [row.item for row in _decoded(rows)[1]]
    return items


def _decoded(rows: list[Row]) -> tuple[int, list[PositionedItem]]:
    """How many rows there were, and those of them that are items; the others are reported."""
    found = []
    for position, stored in rows:
        item = decode_item(stored)
        if item is None:
            _report_corrupt(position)
        else:
            found.append(PositionedItem(position, item))
    return len(rows), found


def _report_corrupt(row_id: int) -> None:
    logger.warning("row %d is corrupt and was left out", row_id)


def _metadata_columns(metadata: SessionMetadata) -> tuple[Any, ...]:
    for name in ("user_id", "agent_id", "title"):
        value = getattr(metadata, name)
        if value is not None and not isinstance(value, str):
            raise TypeError(f"metadata.{name} must be a string or None, not {type(value).__name__}")
    (data,) = encode_items([dict(metadata.data)])
    return metadata.user_id, metadata.agent_id, metadata.title, data


def _metadata_of(rows: list[Row]) -> SessionMetadata:
    if not rows:
        return SessionMetadata()
    user_id, agent_id, title, data = rows[0]
    return SessionMetadata(user_id, agent_id, title, json.loads(data))
