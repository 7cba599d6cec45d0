"""The store of LangGraph on the databases of Recollect."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeVar

import numpy as np
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)

from ....errors import InvalidTypeError, InvalidValueError
from ....memory.search.embedders import Embedder, build_embedder
from ....memory.store import MemoryStore
from ....sql.columns import time_to_column
from ....sql.database import SQLStore
from ....sql.scripts import Decode, MakeScript
from ...blocking import run_blocking
from .filters import check_filter, matches
from .memories import ROOT, MemoryNamespace
from .namespaces import Namespace, range_of, select, to_bytes
from .owners import check_patterns, owner_in, owner_of
from .ranking import rank_items
from .rows import (
    GET,
    LIST,
    NAMESPACES,
    PAGE,
    VECTORS_OF,
    IndexedText,
    NamespaceKey,
    NewItem,
    StoredItem,
    Times,
    assign_owners,
    check_key,
    delete_expired,
    items_from,
    namespaces_from,
    new_item,
    put_items,
    refresh,
    texts_from,
)
from .schema import StoreSchema

T = TypeVar("T")


class _Tables(SQLStore):
    schema = StoreSchema()

    async def write(self, make_script: MakeScript[T]) -> T:
        return await self._write(make_script)

    async def fetch(self, sql: str, parameters: Sequence[Any], decode: Decode[T]) -> T:
        return await self._fetch(sql, parameters, decode)


class ItemCopy(NamedTuple):
    """An item of another store or of an export."""

    op: PutOp
    times: Times
    owner: str | None = None


class Store(BaseStore):
    """Items by namespace and key, in SQLite or PostgreSQL, found by filters and by meaning.

    Texts of items are embedded on this machine, without a key; `embedder=None` turns that off. `fields` names
    the parts of a value that are embedded. With a `memory`, the entries of an agent are the items of the
    namespace `("memories", user)`, read-only, with their evidence. `ttl` sets a default time to live.
    `owners` says where the user id stands in namespaces, such as `("notes", "{user_id}")`: these items are
    exported and erased with the user. In a run, an item whose namespace or key has the run's user is theirs.
    """

    supports_ttl = True

    def __init__(
        self,
        url_or_path: str | Path,
        *,
        embedder: Embedder | Literal["local"] | None = "local",
        fields: Sequence[str] = ("$",),
        memory: MemoryStore | None = None,
        agent_id: str | None = None,
        ttl: TTLConfig | None = None,
        owners: Sequence[Namespace] = (),
        create_tables: bool = False,
        engine_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if (memory is None) != (agent_id is None):
            raise InvalidValueError("give both memory and agent_id, or none of them")
        self._embedder = build_embedder("local") if embedder == "local" else embedder
        self._fields = list(fields)
        self._memories = MemoryNamespace(memory, agent_id) if memory and agent_id else None
        self.ttl_config = ttl
        self._owners = check_patterns(owners)
        self._tables = _Tables(url_or_path, create_tables=create_tables, engine_kwargs=engine_kwargs)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations. The same as `abatch`."""
        return run_blocking(self.abatch(ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: first all reads, then all writes in one transaction."""
        listed = list(ops)
        for op in listed:
            validate_op_namespace(op)
        new = {(op.namespace, op.key): self._check_put(op) for op in listed if isinstance(op, PutOp)}
        results = [await self._read(op) for op in listed]
        if new:
            items = [await self._embedded(op, item) for op, item in new.values()]
            await self._tables.write(partial(put_items, items, self._embedder_name))
        return results

    async def assign_owners(self) -> int:
        """Set the owner of stored items that have none, by the patterns of `owners`; returns how many."""
        return await self._tables.write(partial(assign_owners, partial(owner_in, patterns=self._owners)))

    async def put_copies(self, copies: Sequence[ItemCopy]) -> None:
        """Store items as they were elsewhere, with their times and owners, in one transaction."""
        items = []
        for op, times, owner in copies:
            validate_op_namespace(op)
            item = self._check_put(op)[1]
            copy = replace(item, times=times, owner=owner or item.owner)
            items.append(await self._embedded(op, copy))
        await self._tables.write(partial(put_items, items, self._embedder_name))

    async def delete_expired(self) -> int:
        """Delete items whose time to live is over, and return how many. Each write does that, too."""
        return await self._tables.write(delete_expired)

    async def aclose(self) -> None:
        """Release the database. May be called more than once."""
        await self._tables.aclose()

    def close(self) -> None:
        """Release the database without waiting. May be called more than once."""
        self._tables.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # --- reads ---

    async def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            return await self._get(op)
        if isinstance(op, SearchOp):
            return await self._search(op)
        if isinstance(op, ListNamespacesOp):
            return await self._list_namespaces(op)
        if isinstance(op, PutOp):
            return None
        raise InvalidTypeError(f"a store has no operation {type(op).__name__}")

    async def _get(self, op: GetOp) -> Item | None:
        if self._memories and self._memories.has(op.namespace):
            return await self._memories.get(op.namespace, check_key(op.key))
        found = await self._tables.fetch(GET, (_now(), to_bytes(op.namespace), check_key(op.key)), items_from)
        await self._refresh(found, op.refresh_ttl)
        return found[0].item if found else None

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        wanted = check_filter(op.filter)
        if op.limit < 0 or op.offset < 0:
            raise InvalidValueError(f"limit and offset must not be negative: {op.limit}, {op.offset}")
        if self._memories and self._memories.has(op.namespace_prefix):
            return await self._memories.search(op)
        edges = (_now(), *range_of(op.namespace_prefix))
        if op.query is None and not wanted:
            found = await self._tables.fetch(PAGE, (*edges, op.limit, op.offset), items_from)
        else:
            found = await self._tables.fetch(LIST, edges, items_from)
            found = [stored for stored in found if matches(stored.item.value, wanted)]
        scores: Mapping[NamespaceKey, float] = {}
        if op.query:
            scores = await self._score(op, {stored.place for stored in found})
            found.sort(key=lambda stored: -scores.get(stored.place, -1.0))
        if op.query or wanted:
            found = found[op.offset : op.offset + op.limit]
        await self._refresh(found, op.refresh_ttl)
        return [_search_item(stored.item, scores.get(stored.place)) for stored in found]

    async def _score(self, op: SearchOp, places: set[NamespaceKey]) -> dict[NamespaceKey, float]:
        """The scores of the items that answer the question. Items without texts have none."""
        if self._embedder is None or not op.query:
            return {}
        edges = (*range_of(op.namespace_prefix), self._embedder_name)
        texts = await self._tables.fetch(VECTORS_OF, edges, texts_from)
        texts = {place: some for place, some in texts.items() if place in places}
        (vector,) = await self._embedder.embed([op.query])
        limit = op.offset + op.limit
        ranked = await asyncio.to_thread(rank_items, op.query, vector, texts, limit)
        return dict.fromkeys(texts, 0.0) | {each.place: each.score for each in ranked}

    async def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        found = await self._tables.fetch(NAMESPACES, (_now(),), namespaces_from)
        if self._memories:
            found += await self._memories.list()
        return select(found, op)

    async def _refresh(self, found: Sequence[StoredItem], wanted: bool) -> None:
        expiring = [stored for stored in found if stored.ttl is not None]
        if wanted and expiring:
            await self._tables.write(partial(refresh, expiring))

    # --- writes ---

    def _check_put(self, op: PutOp) -> tuple[PutOp, NewItem]:
        if self._memories and op.namespace[:1] == (ROOT,):
            raise InvalidValueError(
                f"the namespace {op.namespace!r} shows entries of memory, and is read-only"
            )
        return op, replace(new_item(op), owner=owner_of(op.namespace, op.key, self._owners))

    async def _embedded(self, op: PutOp, item: NewItem) -> NewItem:
        texts = self._texts(op)
        if self._embedder is None or not texts:
            return item
        vectors = await self._embedder.embed(texts)
        rows = [np.asarray(vector, np.float32).tobytes() for vector in vectors]
        return replace(item, texts=[IndexedText(*pair) for pair in zip(texts, rows, strict=True)])

    def _texts(self, op: PutOp) -> list[str]:
        if op.value is None or op.index is False:
            return []
        fields = self._fields if op.index is None else op.index
        found = [text for field in fields for text in _texts_at(op.value, field)]
        return [text for text in found if text.strip()]

    @property
    def _embedder_name(self) -> str:
        return "" if self._embedder is None else self._embedder.name


def _texts_at(value: Mapping[str, Any], field: str) -> list[str]:
    """The texts of a field. `$` is the whole value: one text of all its texts."""
    if field == "$":
        return [". ".join(_all_texts(value))]
    return list(get_text_at_path(value, tokenize_path(field)))


def _all_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _all_texts(part)


def _now() -> str:
    return time_to_column(datetime.now(UTC))


def _search_item(item: Item, score: float | None) -> SearchItem:
    return SearchItem(
        namespace=item.namespace,
        key=item.key,
        value=item.value,
        created_at=item.created_at,
        updated_at=item.updated_at,
        score=score,
    )
