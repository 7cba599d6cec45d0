"""A session on SQL: the contract and the abilities, the same for every database."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ...items import Item, decode_item, encode_items
from ...sql.scripts import Engine, MakeScript, Row, Script, Statement, T, run_all
from ...text_checks import check_text
from ..changes import revise, rewrite
from ..protocol import Items, Note, PositionedItem, SessionABC, SessionMetadata
from ..sdk_hooks import ItemTexts, SDKCompaction, encode_batch
from ..settings import check_limit
from .queries import Queries, Reads
from .rows import (
    items_from_joined,
    items_from_rows,
    metadata_from_rows,
    metadata_to_columns,
    note_from_rows,
    positioned_from_joined,
    positioned_from_rows,
    report_corrupt,
)

_LARGE = 1_000_000  # bytes of items
_NO_LIMIT = 2**62  # rows


class SQLSession(ItemTexts, SDKCompaction, SessionABC):
    """Base class of sessions on SQL. A subclass brings an engine and the statements of its dialect."""

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
        self._new_metadata = None if metadata is None else metadata_to_columns(metadata)
        # Set once a history proves too long or too large to be read as one joined row.
        self._reads_rows = False
        self._rows_until = -1  # the same for reads after a position: up to this one they read rows

    # --- the contract ---

    async def get_items(self, limit: int | None = None) -> Items:
        """All items, oldest first. With a limit, only the newest."""
        limit = self._effective_limit(limit)
        if limit == 0:
            return []
        return await self._read(self._reads, await self._scope(), limit)

    async def add_items(self, items: Items) -> None:
        """Append a batch atomically, and create the session if it does not exist."""
        self._check_open()
        encoded = await self._texts_of(items)
        if encoded:
            await self._write(partial(self._append, encoded))

    async def pop_item(self) -> Any:
        """Remove the newest item and return it, or `None`. Corrupt rows that are newer are removed too."""
        return await (self._pop_own_text() if self._has_own_texts else self._write(self._pop))

    async def clear_session(self) -> None:
        """Remove all items, and the session with its metadata."""
        await self._write(self._clear)

    # --- abilities ---

    async def transform_items(self, change: Callable[[list[Item]], list[Item]]) -> None:
        """Replace the history with the result of the pure function `change`, in one transaction."""
        self._refuse_own_texts("transform_items")
        await self._write(partial(self._transform, change))

    async def replace_items(self, items: Items) -> None:
        """Replace the history with these items."""
        await encode_batch(items)  # raises an error for an invalid item before anything is changed
        await self.transform_items(lambda _: items)

    async def revise_items(self, change: Callable[[list[Item]], list[Item | None]]) -> None:
        """Change stored items in place; `None` removes one. Positions and corrupt rows stay."""
        self._refuse_own_texts("revise_items")
        await self._write(partial(self._revise, change))

    async def pop_checked(self, accept: Callable[[Item], bool]) -> Any:
        """Remove the newest item that `accept` accepts, and those after it. If it raises, nothing changes."""
        self._refuse_own_texts("pop_checked")
        return await self._write(partial(self._pop, accept))

    async def read_after(self, position: int, limit: int | None = None) -> list[PositionedItem]:
        """The first `limit` items after a position (0: from the start), oldest first."""
        self._refuse_own_texts("read_after")
        self._check_open()
        check_limit(limit)
        parameters = (*await self._scope(), position)
        rows = await self._read_joined_after(parameters, limit)
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
        """The metadata; empty if none was set."""
        self._check_open()
        await self._engine.prepare(self._queries.schema)
        return await self._engine.fetch(self._queries.get_metadata, (self.session_id,), metadata_from_rows)

    async def set_metadata(self, metadata: SessionMetadata) -> None:
        """Set the metadata, and create the session if it does not exist."""
        await self._write(partial(self._describe, metadata_to_columns(metadata)))

    async def get_note(self, key: str) -> Note | None:
        """The note of this key, or `None`."""
        self._refuse_own_texts("get_note")
        self._check_open()
        check_text("key", key)
        await self._engine.prepare(self._queries.schema)
        return await self._engine.fetch(self._queries.get_note, (self.session_id, key), note_from_rows)

    async def set_note(self, key: str, data: Mapping[str, Any], version: int) -> bool:
        """Set a note if it still has this version (0: it does not exist). `False` if it has another."""
        self._refuse_own_texts("set_note")
        check_text("key", key)
        (text,) = encode_items([dict(data)])
        return await self._write(partial(self._set_note, key, text, version))

    async def take_lease(self, owner: str, seconds: float) -> bool:
        """Take or extend the lease. `False` while another owner has one that has not expired."""
        check_text("owner", owner)
        return await self._write(partial(self._take_lease, owner, float(seconds)))

    async def drop_lease(self, owner: str) -> None:
        """Release the lease if this owner has it."""
        check_text("owner", owner)
        await self._write(partial(self._drop_lease, owner))

    # --- reads ---

    def _reads_of(self, queries: Queries) -> Reads:
        return queries.history

    async def _scope(self) -> tuple[Any, ...]:
        """The first parameters of the statements that read this history."""
        await self._engine.prepare(self._queries.schema)
        return (self.session_id,)

    async def _read(self, reads: Reads, scope: tuple[Any, ...], limit: int | None) -> Items:
        if self._has_own_texts:
            return await self._read_own_texts(reads, scope, limit)
        if limit is None or limit <= self._queries.max_joined:
            items = await self._read_joined(reads, scope, limit)
            if items is not None:
                return items
        if limit is None:
            return await self._engine.fetch(reads.all, scope, items_from_rows)
        return [row.item for row in await self._newest(reads.newest, scope, limit)]

    async def _read_own_texts(self, reads: Reads, scope: tuple[Any, ...], limit: int | None) -> Items:
        """The newest items, with texts that a subclass has serialized."""
        width = _NO_LIMIT if limit is None else limit
        while True:
            rows = await self._engine.fetch(reads.newest, (*scope, width), list[Row])
            items = [item for row in rows[::-1] if (item := await self._item_of_row(*row)) is not None]
            if limit is None or len(items) >= limit or len(rows) < width:
                return items if limit is None else items[-limit:]
            width *= 2

    async def _pop_own_text(self) -> Item | None:
        """Remove the newest item, with a text that a subclass has serialized. Removes none if that raises."""
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

    async def _read_joined(self, reads: Reads, scope: tuple[Any, ...], limit: int | None) -> Items | None:
        """A short history, read as one row. `None` if it is longer, or if a part of it is invalid."""
        if self._reads_rows:
            return None
        width = self._queries.max_joined + 1 if limit is None else limit
        size, items = await self._engine.fetch(reads.joined, (*scope, width), items_from_joined)
        longer = limit is None and items is not None and len(items) == width
        # The next read need not find out again. A large history must not be read in one step.
        self._reads_rows = longer or size > _LARGE
        return None if longer else items

    async def _read_joined_after(
        self, parameters: tuple[Any, ...], limit: int | None
    ) -> list[PositionedItem] | None:
        """The items after a position, read as one row. `None` as above."""
        width = self._queries.max_joined + 1 if limit is None else limit
        if parameters[-1] <= self._rows_until or not 0 < width <= self._queries.max_joined + 1:
            return None
        size, rows = await self._engine.fetch(
            self._reads.joined_after, (*parameters, width), positioned_from_joined
        )
        longer = limit is None and rows is not None and len(rows) == width
        if longer or size > _LARGE:
            self._rows_until = parameters[-1]
        return None if longer else rows

    async def _newest(self, sql: str, parameters: tuple[Any, ...], limit: int) -> list[PositionedItem]:
        return (await self._window(sql, parameters, limit))[::-1]

    async def _window(self, sql: str, parameters: tuple[Any, ...], limit: int | None) -> list[PositionedItem]:
        """The first `limit` valid rows of a query. If some are corrupt, it reads with a larger limit."""
        width = _NO_LIMIT if limit is None else limit
        while True:
            rows, found = await self._engine.fetch(sql, (*parameters, width), positioned_from_rows)
            if limit is None or len(found) >= limit or rows < width:
                return found[:limit]
            width *= 2

    # --- writes: scripts, which the engine runs in a transaction ---

    async def _write(self, make_script: MakeScript[T]) -> T:
        self._check_open()
        await self._engine.prepare(self._queries.schema)
        return await self._engine.write(make_script)

    def _stored_form(self, encoded: list[str]) -> list[str]:
        """JSON texts in the form that this database stores."""
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
        """Remove the newest row and return its position and text, or `None`."""
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
        _, before = positioned_from_rows(rows)
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
        """Rewrite from the first item that differs: to undo one turn changes only that turn."""
        yield from self._lock(make=True)
        scope = yield from self._scope_within()
        rows = yield Statement(self._reads.all, scope)
        _, before = positioned_from_rows(rows)
        same, rest = rewrite([row.item for row in before], change)
        if same == len(before) and not rest:
            return
        last_kept = before[same - 1].position if same else 0
        yield from self._remove_after(scope, last_kept)
        yield Statement(self._queries.touch_session, (self.session_id,))
        if rest:
            yield from self._append(rest)

    def _scope_within(self) -> Script[tuple[Any, ...]]:
        """The same as `_scope`, within a transaction."""
        yield from ()
        return (self.session_id,)

    def _remove_after(self, scope: tuple[Any, ...], position: int) -> Script[None]:
        yield Statement(self._queries.delete_items_after, (*scope, position))

    def _lock(self, make: bool = False) -> Script[bool]:
        """Lock the row of the session until the end of the transaction. SQLite needs no lock of its own.

        Lock order: the session before its items. With `make`, creates the session if it does not exist.
        Returns `False` if it does not exist: it is then empty, and the caller must stop. Without the lock it
        would conflict with a transaction that creates the session.
        """
        if not self._queries.lock or (yield Statement(self._queries.lock_session, (self.session_id,))):
            return True
        if make:
            yield Statement(self._queries.touch_session, (self.session_id,))
        return make

    def _describe(self, columns: tuple[Any, ...]) -> Script[None]:
        yield Statement(self._queries.touch_session, (self.session_id,))
        yield Statement(self._queries.set_metadata, (self.session_id, *columns))

    def _set_note(self, key: str, text: str, version: int) -> Script[bool]:
        yield from self._lock(make=True)
        note = note_from_rows((yield Statement(self._queries.get_note, (self.session_id, key))))
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
