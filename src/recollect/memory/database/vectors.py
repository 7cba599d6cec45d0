"""The vectors of entries and messages: which are missing, storing them, and finding the nearest.

A vector is stored in the row of its text, with the model that made it and its dimension. It has length 1.
Vectors of different models or dimensions are never compared.
"""

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...sql.columns import check_id
from ...sql.scripts import Row, Script, Statement, run_all
from ..search.passages import split
from ..search.records import VERSION, Place, Record, make_record
from .access import MemoryDatabase, column_now
from .corruption import UNREADABLE, report_corrupt, row_id_of, stored_text, value_or
from .dialect import POSTGRESQL
from .records import Key, RecordQueries, StoredRecord, place_from
from .records import write as write_records
from .schema import EMBEDDERS, MESSAGES
from .vector_cache import CacheKey, KeyedVectors, VectorCache
from .vector_queries import SOURCES, Kind, Matrix, Vector, VectorQueries, tenants_pending

if TYPE_CHECKING:
    from ..search.embedders import Embedder

_log = logging.getLogger("recollect.memory")

_CHOOSE = (
    f"INSERT INTO {EMBEDDERS.name} (tenant, vector_model, chosen_at) VALUES (?1, ?2, ?3)"
    " ON CONFLICT (tenant) DO UPDATE SET vector_model = excluded.vector_model, chosen_at = excluded.chosen_at"
)
_CHOSEN = f"SELECT vector_model FROM {EMBEDDERS.name} WHERE tenant = ?1"
_MOST_COUNTED = 10_000
_AT_ONCE = 100  # rows per transaction
# A vector takes a millisecond there because of its index, and requests that change the same memories wait.
_AT_ONCE_ON_POSTGRESQL = 8
_BLOCK_BYTES = 4 * 2**20  # of vectors that are compared at once
_SPARE = 10  # candidates beyond the limit: databases round differently
_SAME = 1e-6  # similarities that differ by less are equal
_DIGITS = 6


@dataclass(frozen=True)
class Pending:
    """A text that has no vector of a model yet."""

    kind: Kind
    key: tuple[str, ...]
    memory_id: str
    stored: str = field(repr=False)
    place: tuple[Any, ...] = field(default=(None, None, 0, None), repr=False)
    """The speaker, index and time of a message, as they are stored."""

    @property
    def text(self) -> str:
        """The text to embed."""
        from ..texts.similarity import gist_of

        text = stored_text(self.stored)
        return gist_of(text) if self.kind == "entry" else text

    @property
    def is_corrupt(self) -> bool:
        """Whether the stored text cannot be read."""
        try:
            stored_text(self.stored)
        except UNREADABLE:
            report_corrupt(SOURCES[self.kind].table.name, row_id_of(*self.key))
            return True
        return False


@dataclass(frozen=True)
class NewVector:
    """The vector of a text; `None` if the model cannot embed the text."""

    pending: Pending
    vector: Vector | None = field(repr=False)
    of_passages: Matrix | None = field(default=None, repr=False)
    """The vectors of the passages of a message. Without them, its vector counts for each."""

    def record(self) -> Record:
        """The search record of the message."""
        place = value_or(MESSAGES.name, row_id_of(*self.pending.key), place_from, self.pending.place, Place())
        text = "" if self.pending.is_corrupt else self.pending.text
        passages = split(text)
        vectors = self.of_passages
        if vectors is None and self.vector is not None:
            vectors = np.tile(self.vector, (len(passages), 1))
        return make_record(text, place, vectors, passages)


class Vectors:
    """The vectors in a database of long-term memory."""

    def __init__(self, database: MemoryDatabase, tenant: str = "default") -> None:
        self._database = database
        self.tenant = tenant
        self._queries = {kind: VectorQueries(kind, database.dialect) for kind in SOURCES}
        self._records = RecordQueries(database.dialect)
        self._warned: set[tuple[Kind, int]] = set()
        self._cache = VectorCache()

    async def pending(self, model: str, limit: int) -> list[Pending]:
        """Texts without a vector of a model: entries before messages, and first those without any vector."""
        found: list[Pending] = []
        for kind, queries in self._queries.items():
            decode = partial(_pending_from, kind)
            left = limit - len(found)
            page = (model, self.tenant, left)
            found += await self._database.fetch(queries.pending, page, decode) if left > 0 else []
        return found

    def of(self, tenant: str) -> "Vectors":
        """The same for another tenant."""
        other = copy(self)
        other.tenant = tenant
        return other

    async def tenants_pending(self, model: str) -> list[str]:
        """All tenants that have texts without a vector of a model, in the order of their names."""
        return await self._database.fetch(
            tenants_pending(self._queries.values()), (model,), lambda rows: [tenant for (tenant,) in rows]
        )

    async def count_pending(self, model: str) -> int:
        """How many texts have no vector of a model. Counting stops at 10,000."""
        counted = 0
        for queries in self._queries.values():
            sql = queries.count_pending(_MOST_COUNTED)
            counted += await self._database.fetch(sql, (model, self.tenant), _number_from)
        return min(counted, _MOST_COUNTED)

    async def is_pending_in(self, memory_id: str, model: str) -> bool:
        """Whether a memory has texts without a vector of a model."""
        for queries in self._queries.values():
            if await self._database.fetch(queries.pending_in_memory, (memory_id, model), bool):
                return True
        return False

    async def choose(self, model: str) -> None:
        """Set the model of all new vectors of the tenant. The last call wins, in every process."""
        now = column_now()
        await self._database.write(lambda: run_all([Statement(_CHOOSE, (self.tenant, model, now))]))

    async def chosen(self) -> str | None:
        """The model that was chosen for new vectors, if any."""
        return await self._database.fetch(_CHOSEN, (self.tenant,), lambda rows: rows[0][0] if rows else None)

    async def store(self, model: str, made: Sequence[NewVector]) -> int:
        """Store vectors, a few in each transaction; returns how many were stored.

        A vector is skipped if its row no longer exists, has another text, or has a vector of this model.
        Raises `ValueError` for values that are not finite numbers and for vectors of length 0.
        """
        check_id("model", model)
        ready = [replace(each, vector=None if each.vector is None else _unit(each.vector)) for each in made]
        said = [each for each in ready if each.pending.kind == "turn"]
        records = await asyncio.to_thread(_records_of, said) if said else {}
        ready.sort(key=lambda each: each.pending.memory_id)  # so that few transactions lock the same memory
        at_once = _AT_ONCE_ON_POSTGRESQL if self._database.dialect is POSTGRESQL else _AT_ONCE
        count = 0
        for start in range(0, len(ready), at_once):
            some = ready[start : start + at_once]
            count += await self._database.write(
                partial(_store, self._queries, self._records, model, some, records)
            )
        return count

    async def read(
        self, kind: Kind, *memory_ids: str, model: str, ids: Iterable[str] | None = None
    ) -> dict[str, Vector]:
        """The vectors of memories, by the ids of entries or messages (`turn_id`): all, or those of some ids.

        They have length 1. Vectors of superseded entries are among them.
        """
        queries, decode = self._queries[kind], partial(_vectors_from, self._queries[kind])
        memories = json.dumps(memory_ids)
        if ids is None:
            return await self._database.fetch(queries.read, (memories, model), decode)
        wanted = {key: one for one in ids if (key := _key(kind, one))}
        parts = [json.dumps(sorted(set(part))) for part in zip(*wanted, strict=True)]
        if not parts:
            return {}
        found = await self._database.fetch(queries.read_some, (memories, model, *parts), decode)
        return {one: found[one] for one in map(_id, wanted) if one in found}

    async def nearest(
        self,
        kind: Kind,
        vector: Vector | Sequence[float],
        model: str,
        *,
        tenant: str,
        memory_id: str | None = None,
        limit: int = 10,
    ) -> list[tuple[str, float]]:
        """The ids of the nearest vectors, with their similarities from -1 to 1: of a memory, or of a tenant.

        Within a memory all vectors are compared. Across a tenant PostgreSQL uses an approximate index.
        """
        query = _Query(self._queries[kind], _unit(vector), model, tenant, memory_id, limit)
        if limit < 1:
            return []
        if not query.queries.is_postgres:
            if memory_id is None:
                return await self._compare_all(query)
            return await self._compare(kind, memory_id, query)
        if memory_id is not None:
            sql = query.queries.nearest_here(query.dimension, limit + _SPARE)
            return query.best(await self._database.fetch(sql, query.parameters, query.read))
        rows, indexed = await self._database.write(partial(_search, query))
        if not indexed:
            self._warn_once(kind, query.dimension)
        return query.best(query.read(rows))

    def forget(self, memory_id: str) -> None:
        """Drop the cached vectors of a memory: its data was erased."""
        self._cache.clear(memory_id)

    async def _compare(self, kind: Kind, memory_id: str, query: "_Query") -> list[tuple[str, float]]:
        """Compare within a memory. The cached vectors are used until the stamp of the memory changes."""
        key = CacheKey(memory_id, kind, query.model, query.tenant, query.dimension)
        stamp = await self._database.fetch(query.queries.stamp, (memory_id,), _number_from)
        cached = self._cache.get(key, stamp)
        if cached is None:
            sql = query.queries.all_here(query.dimension)
            cached = await self._database.fetch(sql, query.parameters, query.read)
            self._cache.put(key, stamp, cached)
        if cached.matrix.nbytes > _BLOCK_BYTES:  # this would block the event loop
            return await asyncio.to_thread(query.best, cached)
        return query.best(cached)

    async def _compare_all(self, query: "_Query") -> list[tuple[str, float]]:
        """Compare block by block: the memory needed does not depend on the number of vectors."""
        at_once = max(1, _BLOCK_BYTES // (4 * query.dimension))
        sql = query.queries.some_anywhere(query.dimension, at_once)
        best: list[tuple[str, float]] = []
        last: int | None = -1
        while last is not None:
            parameters = (last, query.model, query.tenant)
            found, last = await self._database.fetch(sql, parameters, partial(_block_from, query, at_once))
            best = _first(best + found, query.limit)
        return best

    def _warn_once(self, kind: Kind, dimension: int) -> None:
        if (kind, dimension) not in self._warned:
            self._warned.add((kind, dimension))
            _log.warning("no index for vectors of %d dimensions (%s): all are compared", dimension, kind)


def turn_id(conversation_id: str, message_id: str) -> str:
    """The id of a message in searches: a JSON list of both ids, which is unique."""
    return json.dumps([conversation_id, message_id])


def turn_of(turn: str) -> tuple[str, str]:
    """The conversation id and message id in an id of `turn_id`. Raises `ValueError` for any other text."""
    parts = json.loads(turn)
    if not isinstance(parts, list) or len(parts) != 2 or not all(isinstance(part, str) for part in parts):
        raise ValueError("this is not the id of a turn")
    return parts[0], parts[1]


def model_of(embedder: "Embedder") -> str:
    """The name under which vectors are stored. Vectors of the same name can be compared.

    It says how texts are embedded too: after a change of that, all texts are embedded again.
    """
    return f"{embedder.name}/{embedder.dimensions}/p{VERSION}"


# --- storing ---


def _records_of(made: Sequence[NewVector]) -> dict[Key, StoredRecord]:
    keys = [(each.pending.key[0], each.pending.key[1]) for each in made]
    return {key: StoredRecord(key, each.record()) for key, each in zip(keys, made, strict=True)}


def _store(
    queries: dict[Kind, VectorQueries],
    record_queries: RecordQueries,
    model: str,
    made: Sequence[NewVector],
    records: Mapping[Key, StoredRecord],
) -> Script[int]:
    count = 0
    memory_ids = json.dumps(sorted({each.pending.memory_id for each in made}))
    # Lock order: memories in the order of their ids, then their rows.
    yield Statement(next(iter(queries.values())).lock_memories, (memory_ids,))
    for kind, of_kind in queries.items():
        mine = [each for each in made if each.pending.kind == kind]
        if not mine:
            continue
        values = [value for each in mine for value in _values(of_kind, each)]
        rows = yield Statement(of_kind.store(len(mine)), (model, *values))
        owners = {tuple(key): memory_id for *key, memory_id in rows}
        if owners:
            yield Statement(of_kind.stamp_memories, (json.dumps(sorted(set(owners.values()))),))
        if kind == "turn":
            theirs = {key: owners[key] for key in records if key in owners}
            yield from write_records(record_queries, [records[key] for key in theirs], theirs, model)
        count += len(owners)
    return count


def _values(queries: VectorQueries, new: NewVector) -> list[Any]:
    key = [*new.pending.key, new.pending.stored]
    if new.vector is None:
        return [*key, None, 0]
    return [*key, queries.parameter(new.vector), len(new.vector)]


def _unit(given: Vector | Sequence[float]) -> Vector:
    """The vector scaled to length 1: only angles are compared."""
    vector = np.asarray(given, np.float64)
    if vector.ndim != 1 or not np.isfinite(vector).all():
        raise ValueError("a vector must be a list of finite numbers")
    length = np.linalg.norm(vector)
    if not np.isfinite(length) or length == 0:
        raise ValueError("a vector must have a length that is not 0")
    return (vector / length).astype(np.float32)


# --- finding ---


@dataclass(frozen=True)
class _Query:
    """A search for the nearest vectors."""

    queries: VectorQueries
    vector: Vector
    model: str
    tenant: str
    memory_id: str | None
    limit: int

    @property
    def dimension(self) -> int:
        return len(self.vector)

    @property
    def parameters(self) -> tuple[Any, ...]:
        of_memory = () if self.memory_id is None else (self.memory_id,)
        return (self.queries.parameter(self.vector), self.model, self.tenant, *of_memory)

    def read(self, rows: Sequence[Row]) -> KeyedVectors:
        """Decode rows of a key and a vector."""
        matrix = self.queries.vectors([row[-1] for row in rows], self.dimension)
        return KeyedVectors([tuple(row[:-1]) for row in rows], matrix)

    def best(self, given: KeyedVectors) -> list[tuple[str, float]]:
        """The nearest of some vectors.

        Candidates are found at low precision and ranked at a higher one, so all databases agree.
        """
        candidates = _near(given.matrix, self.vector, self.limit)
        similarities = _similarities(given.matrix[candidates], self.vector)
        scored = [(_id(given.keys[row]), score) for row, score in zip(candidates, similarities, strict=True)]
        return _first(scored, self.limit)


def _near(matrix: Matrix, vector: Vector, limit: int) -> NDArray[np.int64]:
    """The rows that may be among the nearest."""
    if len(matrix) <= limit:
        return np.arange(len(matrix))
    rough = np.vecdot(matrix, vector)  # on one core: starting threads would take longer
    edge = np.partition(rough, -limit)[-limit]
    return np.flatnonzero(rough >= edge - 2 * _SAME)


def _similarities(matrix: Matrix, vector: Vector) -> list[float]:
    exact, wanted = matrix.astype(np.float64), vector.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=1) * np.linalg.norm(wanted)
    similarities: list[float] = np.round(np.vecdot(exact, wanted) / lengths, _DIGITS).tolist()
    return similarities


def _first(found: Iterable[tuple[str, float]], limit: int) -> list[tuple[str, float]]:
    """The nearest first, and equally near ones in the order of their ids."""
    return sorted(found, key=lambda each: (-each[1], each[0]))[:limit]


def _search(query: _Query) -> Script[tuple[list[Row], bool]]:
    """The candidates of a tenant, and whether there is an index. For PostgreSQL."""
    wanted = query.limit + _SPARE
    ((indexed, *_),) = yield Statement(query.queries.tune_index(query.dimension))
    if indexed:
        rows = yield Statement(query.queries.nearest_by_index(query.dimension, wanted), query.parameters)
        if len(rows) >= query.limit:
            return rows, True
    # The index scan ends early where vectors of other tenants are nearer: then compare all of this tenant.
    rows = yield Statement(query.queries.nearest_anywhere(query.dimension, wanted), query.parameters)
    return rows, bool(indexed)


# --- rows ---


def _pending_from(kind: Kind, rows: list[Row]) -> list[Pending]:
    width = len(SOURCES[kind].key)
    return [
        Pending(kind, tuple(row[:width]), row[width], row[width + 1], tuple(row[width + 2 :])) for row in rows
    ]


def _number_from(rows: list[Row]) -> int:
    return int(rows[0][0]) if rows else 0


def _block_from(query: _Query, size: int, rows: list[Row]) -> tuple[list[tuple[str, float]], int | None]:
    """The best of a block, and where the next block begins, if there may be one."""
    last = rows[-1][0] if len(rows) == size else None
    return query.best(query.read([row[1:] for row in rows])), last


def _vectors_from(queries: VectorQueries, rows: list[Row]) -> dict[str, Vector]:
    by_size: dict[int, list[Row]] = {}
    for *row, fits in rows:
        if fits:
            by_size.setdefault(len(row[-1]), []).append(tuple(row))
        else:
            report_corrupt(queries.table, row_id_of(*row[:-1]))
    return {
        _id(row[:-1]): vector
        for some in by_size.values()
        for row, vector in zip(some, queries.vectors([row[-1] for row in some], -1), strict=True)
    }


def _id(key: Sequence[str]) -> str:
    return key[0] if len(key) == 1 else turn_id(*key)


def _key(kind: Kind, one: str) -> tuple[str, ...] | None:
    """The key of a row, from the id of an entry or a message; `None` for any other text."""
    if kind == "entry":
        return (one,)
    try:
        return turn_of(one)
    except ValueError:
        return None
