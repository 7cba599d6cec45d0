"""A session on SQL: the contract and the abilities, whatever the database."""

import json
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ...items import Item, decode_item, decode_joined, encode_items
from ...sql.scripts import Engine, MakeScript, Row, Script, Statement, T, run_all
from ...text_checks import check_text
from ..changes import revise, rewrite
from ..protocol import Items, Note, PositionedItem, SessionABC, SessionMetadata, check_metadata
from ..sdk_hooks import ItemTexts, SDKCompaction, encode_batch
from ..settings import check_limit
from .queries import Queries, Reads

logger = logging.getLogger(__name__)

_LARGE = 1_000_000  # bytes of items


class SQLSession(ItemTexts, SDKCompaction, SessionABC):
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
        self._reads = self._reads_of(queries)
        self._new_metadata = None if metadata is None else _metadata_columns(metadata)
        self._is_long = False  # the history was found too long or too large to be read in one piece
        self._long_after = -1  # and what comes after this position, too

    # --- the contract ---

    async def get_items(self, limit: int | None = None) -> Items:
        """All items, oldest first; with a limit the newest of them."""
        limit = self._effective_limit(limit)
        if limit == 0:
            return []
        return await self._read(self._reads, await self._scope(), limit)

    async def add_items(self, items: Items) -> None:
        """Append a batch, whole or not at all, and make the session if it is not there."""
        self._check_open()
        encoded = await self._texts_of(items)
        if encoded:
            await self._write(partial(self._append, encoded))

    async def pop_item(self) -> Any:
        """Remove the newest item and return it, `None` if there is none. Corrupt rows on the way go too."""
        return await (self._pop_own_text() if self._has_own_texts else self._write(self._pop))

    async def clear_session(self) -> None:
        """Remove all items, and the session with its metadata."""
        await self._write(self._clear)

    # --- abilities ---

    async def transform_items(self, change: Callable[[list[Item]], list[Item]]) -> None:
        """Replace the history by what the pure function `change` makes of it; nobody comes in between."""
        self._refuse_own_texts("transform_items")
        await self._write(partial(self._transform, change))

    async def replace_items(self, items: Items) -> None:
        """Replace the history by these items."""
        await encode_batch(items)  # a bad one is refused here, before anything else is done
        await self.transform_items(lambda _: items)

    async def revise_items(self, change: Callable[[list[Item]], list[Item | None]]) -> None:
        """Change stored items where they stand; `None` removes one. Positions stay, corrupt rows too."""
        self._refuse_own_texts("revise_items")
        await self._write(partial(self._revise, change))

    async def pop_checked(self, accept: Callable[[Item], bool]) -> Any:
        """Remove the newest item that `accept` takes, and those after it; nothing at all where it raises."""
        self._refuse_own_texts("pop_checked")
        return await self._write(partial(self._pop, accept))

    async def read_after(self, position: int, limit: int | None = None) -> list[PositionedItem]:
        """The first `limit` items after a position (0: from the start), oldest first."""
        self._refuse_own_texts("read_after")
        self._check_open()
        check_limit(limit)
        parameters = (*await self._scope(), position)
        rows = await self._read_after_in_one_piece(parameters, limit)
        return await self._window(self._reads.after, parameters, limit) if rows is None else rows

    async def read_before(self, position: int | None, limit: int) -> list[PositionedItem]:
        """The last `limit` items before a position (`None`: from the end), oldest first."""
        self._refuse_own_texts("read_before")
        self._check_open()
        check_limit(limit)
        if limit == 0:
            return []
        scope = await self._scope()
        if position is None:
            return await self._newest(self._reads.newest, scope, limit)
        return await self._newest(self._reads.before, (*scope, position), limit)

    async def add_batch(self, items: Items, batch_id: str) -> bool:
        """Append a batch unless one of this id was appended within the last day."""
        self._check_open()
        check_text("batch_id", batch_id)
        return await self._write(partial(self._append_once, await self._texts_of(items), batch_id))

    async def get_metadata(self) -> SessionMetadata:
        """The metadata; empty where none was set."""
        self._check_open()
        await self._engine.prepare(self._queries.schema)
        return await self._engine.fetch(self._queries.get_metadata, (self.session_id,), _metadata_of)

    async def set_metadata(self, metadata: SessionMetadata) -> None:
        """Set the metadata, and make the session if it is not there."""
        await self._write(partial(self._describe, _metadata_columns(metadata)))

    async def get_note(self, key: str) -> Note | None:
        """The note of this key, `None` where there is none."""
        self._refuse_own_texts("get_note")
        self._check_open()
        check_text("key", key)
        await self._engine.prepare(self._queries.schema)
        return await self._engine.fetch(self._queries.get_note, (self.session_id, key), _note_of)

    async def set_note(self, key: str, data: Mapping[str, Any], version: int) -> bool:
        """Set a note that still has this version (0: that is not there yet); `False` if it has another."""
        self._refuse_own_texts("set_note")
        check_text("key", key)
        (text,) = encode_items([dict(data)])
        return await self._write(partial(self._note, key, text, version))

    async def take_lease(self, owner: str, seconds: float) -> bool:
        """Take or extend the lease; `False` while another owner's runs."""
        check_text("owner", owner)
        return await self._write(partial(self._take_lease, owner, float(seconds)))

    async def drop_lease(self, owner: str) -> None:
        """Give the lease up, if it is this owner's."""
        check_text("owner", owner)
        await self._write(partial(self._drop_lease, owner))

    # --- how reads are made ---

    def _reads_of(self, queries: Queries) -> Reads:
        return queries.history

    async def _scope(self) -> tuple[Any, ...]:
        """What tells this history from others: the first parameters of the statements that read it."""
        await self._engine.prepare(self._queries.schema)
        return (self.session_id,)

    async def _read(self, reads: Reads, scope: tuple[Any, ...], limit: int | None) -> Items:
        if self._has_own_texts:
            return await self._read_own_texts(reads, scope, limit)
        if limit is None or limit <= self._queries.short:
            items = await self._read_in_one_piece(reads, scope, limit)
            if items is not None:
                return items
        if limit is None:
            return await self._engine.fetch(reads.all, scope, _items_of)
        return [row.item for row in await self._newest(reads.newest, scope, limit)]

    async def _read_own_texts(self, reads: Reads, scope: tuple[Any, ...], limit: int | None) -> Items:
        """The newest items whose texts a subclass has made."""
        width = _EVERYTHING if limit is None else limit
        while True:
            rows = await self._engine.fetch(reads.newest, (*scope, width), list[Row])
            items = [item for row in rows[::-1] if (item := await self._item_of_row(*row)) is not None]
            if limit is None or len(items) >= limit or len(rows) < width:
                return items if limit is None else items[-limit:]
            width *= 2

    async def _pop_own_text(self) -> Item | None:
        """Remove the newest item, whose text a subclass has made; nothing where it raises an error."""
        self._check_open()
        while rows := await self._engine.fetch(self._reads.newest, (*await self._scope(), 1), list[Row]):
            item = await self._item_of_row(*rows[0])
            if await self._write(partial(self._remove_if_newest, rows[0][0])) and item is not None:
                return item
        return None

    async def _item_of_row(self, position: int, stored: bytes | str) -> Item | None:
        item = await self._item_of(stored)
        if item is None:
            report_corrupt(position)
        return item

    async def _read_in_one_piece(
        self, reads: Reads, scope: tuple[Any, ...], limit: int | None
    ) -> Items | None:
        """A short history as one row; `None` if it is longer, or if not all of it is as it should be."""
        if self._is_long:
            return None
        width = self._queries.short + 1 if limit is None else limit
        size, items = await self._engine.fetch(reads.joined, (*scope, width), _items_of_joined)
        longer = limit is None and items is not None and len(items) == width
        # The next read need not find out again; and what is large must not be read in one step.
        self._is_long = longer or size > _LARGE
        return None if longer else items

    async def _read_after_in_one_piece(
        self, parameters: tuple[Any, ...], limit: int | None
    ) -> list[PositionedItem] | None:
        """What comes after a position as one row; `None` as above."""
        width = self._queries.short + 1 if limit is None else limit
        if parameters[-1] <= self._long_after or not 0 < width <= self._queries.short + 1:
            return None
        size, rows = await self._engine.fetch(self._reads.joined_after, (*parameters, width), _rows_of_joined)
        longer = limit is None and rows is not None and len(rows) == width
        if longer or size > _LARGE:
            self._long_after = parameters[-1]
        return None if longer else rows

    async def _newest(self, sql: str, parameters: tuple[Any, ...], limit: int) -> list[PositionedItem]:
        return (await self._window(sql, parameters, limit))[::-1]

    async def _window(self, sql: str, parameters: tuple[Any, ...], limit: int | None) -> list[PositionedItem]:
        """The first `limit` valid rows of a query: a wider look is taken where corrupt rows stand between."""
        width = _EVERYTHING if limit is None else limit
        while True:
            rows, found = await self._engine.fetch(sql, (*parameters, width), decoded)
            if limit is None or len(found) >= limit or rows < width:
                return found[:limit]
            width *= 2

    # --- how writes are made: scripts, which the engine runs in a transaction ---

    async def _write(self, make_script: MakeScript[T]) -> T:
        self._check_open()
        await self._engine.prepare(self._queries.schema)
        return await self._engine.write(make_script)

    def _stored_form(self, encoded: list[str]) -> list[str]:
        """JSON texts as this database stores them."""
        return encoded

    def _append(self, encoded: list[str]) -> Script[None]:
        texts = self._stored_form(encoded)
        yield from run_all(self._queries.append(self.session_id, texts, self._new_metadata))

    def _append_once(self, encoded: list[str], batch_id: str) -> Script[bool]:
        yield Statement(self._queries.touch_session, (self.session_id,))
        yield Statement(self._queries.forget_old_batches, (self.session_id,))
        if not (yield Statement(self._queries.remember_batch, (self.session_id, batch_id))):
            return False
        yield from self._append(encoded)
        return True

    def _pop(self, accept: Callable[[Item], bool] | None = None) -> Script[Item | None]:
        if not (yield from self._lock()):
            return None
        while row := (yield from self._remove_newest()):
            item = decode_item(row[1])
            if item is None:
                report_corrupt(row[0])
            elif accept is None or accept(item):
                return item
        return None

    def _remove_newest(self) -> Script[Row | None]:
        """Remove the newest row and return its position and text, `None` if there is none."""
        rows = yield Statement(self._queries.pop_item, (self.session_id,))
        return rows[0] if rows else None

    def _remove_if_newest(self, position: int) -> Script[bool]:
        if not (yield from self._lock()):
            return False
        scope = yield from self._scope_within()
        newest = yield Statement(self._reads.newest, (*scope, 1))
        is_newest = bool(newest) and newest[0][0] == position
        if is_newest:
            yield from self._remove_newest()
        return is_newest

    def _revise(self, change: Callable[[list[Item]], list[Item | None]]) -> Script[None]:
        if not (yield from self._lock()):
            return
        rows = yield Statement(self._queries.history.all, (self.session_id,))
        _, before = decoded(rows)
        texts, removed = revise([row.item for row in before], change)
        positions = [before[number].position for number in texts]
        changed = dict(zip(positions, self._stored_form(list(texts.values())), strict=True))
        gone = [before[number].position for number in removed]
        if changed or gone:
            yield from run_all(self._queries.revise(self.session_id, changed, gone))
            yield Statement(self._queries.empty_notes, (self.session_id,))

    def _clear(self) -> Script[None]:
        if not (yield from self._lock()):
            return
        yield Statement(self._queries.delete_items_after, (self.session_id, 0))
        yield Statement(self._queries.delete_session, (self.session_id,))

    def _transform(self, change: Callable[[list[Item]], list[Item]]) -> Script[None]:
        """Rewrite from the first item that differs: an undo of one turn touches one turn."""
        yield from self._lock(make=True)
        scope = yield from self._scope_within()
        rows = yield Statement(self._reads.all, scope)
        _, before = decoded(rows)
        same, rest = rewrite([row.item for row in before], change)
        if same == len(before) and not rest:
            return
        last_kept = before[same - 1].position if same else 0
        yield from self._remove_after(scope, last_kept)
        yield Statement(self._queries.touch_session, (self.session_id,))
        if rest:
            yield from self._append(rest)

    def _scope_within(self) -> Script[tuple[Any, ...]]:
        """As `_scope`, within a transaction."""
        yield from ()
        return (self.session_id,)

    def _remove_after(self, scope: tuple[Any, ...], position: int) -> Script[None]:
        yield Statement(self._queries.delete_items_after, (*scope, position))

    def _lock(self, make: bool = False) -> Script[bool]:
        """Keep others from changing the session, where a transaction does not; `make` it to lock it.

        `False` if there is no session: it is empty, and whoever went on would meet others who make it now.
        """
        if not self._queries.lock or (yield Statement(self._queries.lock_session, (self.session_id,))):
            return True
        if make:
            yield Statement(self._queries.touch_session, (self.session_id,))
        return make

    def _describe(self, columns: tuple[Any, ...]) -> Script[None]:
        yield Statement(self._queries.touch_session, (self.session_id,))
        yield Statement(self._queries.set_metadata, (self.session_id, *columns))

    def _note(self, key: str, text: str, version: int) -> Script[bool]:
        yield from self._lock(make=True)
        note = _note_of((yield Statement(self._queries.get_note, (self.session_id, key))))
        if (note.version if note else 0) != version:
            return False
        if note is None:
            yield Statement(self._queries.make_session, (self.session_id,))
        change = self._queries.change_note if note else self._queries.add_note
        yield Statement(change, (self.session_id, key, *self._stored_form([text])))
        return True

    def _take_lease(self, owner: str, seconds: float) -> Script[bool]:
        parameters = (self.session_id, owner, seconds)
        return bool((yield Statement(self._queries.take_lease, parameters, alone=True)))

    def _drop_lease(self, owner: str) -> Script[None]:
        yield Statement(self._queries.drop_lease, (self.session_id, owner), alone=True)


_EVERYTHING = 2**62  # rows: no limit at all


def _items_of_joined(rows: list[Row]) -> tuple[int, Items | None]:
    """The size of a joined row and its items, oldest first; `None` if anything is not as it should be."""
    size, values = _values_of_joined(rows)
    return size, None if values is None else values[::-2]


def _rows_of_joined(rows: list[Row]) -> tuple[int, list[PositionedItem] | None]:
    """The same with the positions, whichever way the database has put them together."""
    size, values = _values_of_joined(rows)
    if values is None:
        return size, None
    found = list(map(PositionedItem, values[::2], values[1::2]))
    is_reversed = bool(found) and found[0].position > found[-1].position
    return size, found[::-1] if is_reversed else found


def _values_of_joined(rows: list[Row]) -> tuple[int, list[Any] | None]:
    count, joined = rows[0]
    if count == 0:
        return 0, []
    values = decode_joined(joined)
    if values is None or len(values) != 2 * count:
        return len(joined), None
    as_it_should_be = all(type(item) is dict for item in values[1::2]) and all(
        type(position) is int for position in values[::2]
    )
    return len(joined), values if as_it_should_be else None


def _items_of(rows: list[Row]) -> Items:
    items = [decode_item(stored) for _, stored in rows]
    if None in items:
        return [row.item for row in decoded(rows)[1]]
    return items


def decoded(rows: list[Row]) -> tuple[int, list[PositionedItem]]:
    """How many rows there were, and those of them that are items; the others are reported."""
    found = []
    for position, stored in rows:
        item = decode_item(stored)
        if item is None:
            report_corrupt(position)
        else:
            found.append(PositionedItem(position, item))
    return len(rows), found


def report_corrupt(row_id: int) -> None:
    logger.warning("row %d is corrupt and was left out", row_id)


def _metadata_columns(metadata: SessionMetadata) -> tuple[Any, ...]:
    check_metadata(metadata)
    (data,) = encode_items([dict(metadata.data)])
    return metadata.user_id, metadata.agent_id, metadata.title, data


def _note_of(rows: list[Row]) -> Note | None:
    return Note(rows[0][0], decode_item(rows[0][1]) or {}) if rows else None


def _metadata_of(rows: list[Row]) -> SessionMetadata:
    if not rows:
        return SessionMetadata()
    user_id, agent_id, title, data = rows[0]
    return SessionMetadata(user_id, agent_id, title, json.loads(data))
