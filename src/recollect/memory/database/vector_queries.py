"""The statements about vectors, for SQLite and for PostgreSQL.

SQLite stores a vector as little-endian 4-byte floats. PostgreSQL has the type of pgvector. It takes a list of
numbers, and `vector_send` returns a header of four bytes and big-endian floats: of all formats that its
drivers support, they read this one fastest.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...sql.description import Table
from .dialect import POSTGRESQL, Dialect
from .schema import CONTENTS, CURRENT_ENTRIES, MEMORIES, MESSAGES, SPOKEN_MESSAGES

Kind: TypeAlias = Literal["entry", "turn"]
Vector: TypeAlias = NDArray[np.float32]
Matrix: TypeAlias = NDArray[np.float32]

# An expression that no index covers: the rows of a memory are few, those of a model may be all there are.
_OF_MODEL = "coalesce(vector_model, '') = ?2"
_NOT_OF_MODEL = ("IS NULL", "< ?1", "> ?1")
_SCANNED = 100  # candidates that an index scan reads: more are slower and find more of the nearest


@dataclass(frozen=True)
class Source:
    """A table that holds vectors."""

    table: Table
    key: tuple[str, ...]
    text: str
    searched: str
    """The condition for rows that are embedded and searched."""
    place: str
    """The columns with the place of a text in its conversation, as they are selected."""
    stamp: str
    """The column of the memory that changes with these rows: caches compare it."""

    @property
    def listed_key(self) -> str:
        """The columns of the key."""
        return ", ".join(self.key)


SOURCES: dict[Kind, Source] = {
    "entry": Source(
        CONTENTS, ("content_id",), "content_text", CURRENT_ENTRIES, "NULL, NULL, 0, NULL", "entries_stamp"
    ),
    "turn": Source(
        MESSAGES,
        ("conversation_id", "message_id"),
        "content",
        SPOKEN_MESSAGES,
        "role, name, message_index, created_at",
        "turns_stamp",
    ),
}


class VectorQueries:
    """The statements about the vectors of one table, in one dialect."""

    def __init__(self, kind: Kind, dialect: Dialect) -> None:
        self._source = source = SOURCES[kind]
        self.is_postgres = dialect is POSTGRESQL
        self._out = "vector_send(content_vector)" if self.is_postgres else "content_vector"
        self._parameter_type = "CAST({} AS REAL[])" if self.is_postgres else "{}"
        self._column_type = "CAST({} AS vector)" if self.is_postgres else "{}"
        ids = dialect.each.format("?1")
        owners = f"{MEMORIES.name} WHERE memory_id IN {ids}"
        selected = f"SELECT memory_id FROM {owners} ORDER BY memory_id"
        self.lock_memories = f"{selected}{dialect.lock_but_not_its_key}"
        self.stamp_memories = (
            f"UPDATE {MEMORIES.name} SET {source.stamp} = {source.stamp} + 1 WHERE memory_id IN {ids}"
        )
        self.stamp = f"SELECT {source.stamp} FROM {MEMORIES.name} WHERE memory_id = ?1"
        self.pending = self._pending(f"{source.listed_key}, memory_id, {source.text}, {source.place}", "?3")
        self.table = source.table.name
        self.read = (
            f"SELECT {source.listed_key}, {self._out}, {vector_fits(dialect)} FROM {source.table.name}"
            f" WHERE memory_id {dialect.among_listed('?1')} AND {_OF_MODEL} AND vector_dimension > 0"
        )
        each = (f"{name} {dialect.among_listed(f'?{place}')}" for place, name in enumerate(source.key, 3))
        self.read_some = f"{self.read} AND {' AND '.join(each)}"

    def count_pending(self, most: int) -> str:
        """How many rows of the tenant ?2 have no vector of the model ?1, counted up to a number."""
        return f"SELECT count(*) FROM ({self._pending('1', str(most))}) AS pending"

    def _pending(self, columns: str, limit: str) -> str:
        """Rows without a vector, then rows with a vector of another model.

        The order is that of the index: the database does not read the rows that are done.
        """
        rows = (
            f"SELECT {columns} FROM {self._source.table.name} WHERE {self._source.searched} AND tenant = ?2"
        )
        conditions = ("vector_model IS NULL AND CAST(?1 AS TEXT) IS NOT NULL", "vector_model < ?1")
        parts = [
            f"SELECT * FROM ({rows} AND {condition} ORDER BY vector_model LIMIT {limit}) AS part{number}"
            for number, condition in enumerate((*conditions, "vector_model > ?1"))
        ]
        return f"{' UNION ALL '.join(parts)} LIMIT {limit}"

    def any_pending(self, tenant: str) -> str:
        """Whether a tenant has rows without a vector of the model ?1, by three lookups in the index."""
        rows = f"SELECT 1 FROM {self._source.table.name} WHERE {self._source.searched} AND tenant = {tenant}"
        return " OR ".join(f"EXISTS ({rows} AND vector_model {which})" for which in _NOT_OF_MODEL)

    @property
    def pending_in_memory(self) -> str:
        """Returns a row if the memory ?1 has rows without a vector of the model ?2."""
        source = self._source
        return (
            f"SELECT 1 FROM {source.table.name} WHERE memory_id = ?1 AND {source.searched}"
            " AND coalesce(vector_model, '') <> ?2 LIMIT 1"
        )

    def store(self, count: int) -> str:
        """Store vectors: the model is ?1, followed by key, text, vector and dimension of each row.

        Rows that have a vector of this model, or another text by now, are not changed.
        """
        source, width = self._source, len(self._source.key) + 3
        given = ", ".join(self._given(2 + row * width) for row in range(count))
        same = " AND ".join(f"target.{name} = given.the_{name}" for name in source.key)
        named = ", ".join(f"the_{name}" for name in source.key)
        return (
            f"WITH given({named}, said, vector, dimension) AS (VALUES {given})"
            f" UPDATE {source.table.name} AS target SET vector_model = ?1,"
            f" vector_dimension = given.dimension,"
            f" content_vector = {self._column_type.format('given.vector')}"
            f" FROM given WHERE {same} AND target.{source.text} = given.said"
            " AND (target.vector_model IS NULL OR target.vector_model <> ?1)"
            f" RETURNING {source.listed_key}, memory_id"
        )

    def _given(self, first: int) -> str:
        texts = range(first, first + len(self._source.key) + 1)
        values = [f"CAST(?{number} AS TEXT)" for number in texts]
        values.append(self._parameter_type.format(f"?{texts.stop}"))
        values.append(f"CAST(?{texts.stop + 1} AS BIGINT)")
        return f"({', '.join(values)})"

    # --- nearest: the vector is ?1, the model ?2, the tenant ?3, the memory ?4 ---

    def _comparable(self, dimension: int, of_model: str = "vector_model = ?2") -> str:
        """Rows whose vectors can be compared. The condition on the dimension matches the partial indexes."""
        source = self._source
        # Within a memory only the index of the memory is used: it finds fewer rows than that of the tenant.
        tenant = "(tenant || '')" if of_model == _OF_MODEL else "tenant"
        return (
            f"SELECT {source.listed_key}, content_vector FROM {source.table.name} WHERE {source.searched}"
            f" AND {of_model} AND vector_dimension = {dimension} AND {tenant} = ?3"
        )

    def nearest_here(self, dimension: int, limit: int) -> str:
        """The nearest of one memory, by comparing all. For PostgreSQL."""
        comparable = self._comparable(dimension, _OF_MODEL)
        return self._sent(f"{comparable} AND memory_id = ?4 {self._exactly(limit)}")

    def nearest_anywhere(self, dimension: int, limit: int) -> str:
        """The nearest of a tenant, by comparing all. For PostgreSQL."""
        memories = f"SELECT memory_id FROM {MEMORIES.name} WHERE tenant = ?3"
        comparable = self._comparable(dimension)
        return self._sent(f"{comparable} AND memory_id IN ({memories}) {self._exactly(limit)}")

    def nearest_by_index(self, dimension: int, limit: int) -> str:
        """The nearest of a tenant by the approximate index. For PostgreSQL."""
        half = f"halfvec({dimension})"
        distance = f"CAST(content_vector AS {half}) <=> CAST(CAST(?1 AS REAL[]) AS {half})"
        return self._sent(f"{self._comparable(dimension)} ORDER BY {distance} LIMIT {limit}")

    def _sent(self, nearest: str) -> str:
        """Convert only the nearest vectors to bytes, and not all that are sorted."""
        return f"SELECT {self._source.listed_key}, {self._out} FROM ({nearest}) AS nearest"

    def _exactly(self, limit: int) -> str:
        ties = ", ".join(f'{name} COLLATE "C"' for name in self._source.key)
        return f"ORDER BY content_vector <=> CAST(CAST(?1 AS REAL[]) AS vector), {ties} LIMIT {limit}"

    def tune_index(self, dimension: int) -> str:
        """Set how the index is scanned in this transaction; returns whether it exists. For PostgreSQL."""
        name = self._source.table.nearest_name(dimension)
        return (
            "SELECT EXISTS (SELECT 1 FROM pg_index"
            f" WHERE indexrelid = to_regclass('{name}') AND indisvalid),"
            " set_config('hnsw.iterative_scan', 'relaxed_order', true),"
            f" set_config('hnsw.ef_search', '{_SCANNED}', true)"
        )

    def all_here(self, dimension: int) -> str:
        """All comparable rows of one memory. For SQLite."""
        fits = f"length(content_vector) = {4 * dimension}"
        comparable = self._comparable(dimension, _OF_MODEL)
        return f"{comparable} AND {fits} AND memory_id = ?4 AND ?1 IS NOT NULL"

    def some_anywhere(self, dimension: int, limit: int) -> str:
        """A block of comparable rows of a tenant, after the row number ?1. For SQLite."""
        fits = f"length(content_vector) = {4 * dimension}"
        columns = self._comparable(dimension).replace("SELECT ", "SELECT rowid, ", 1)
        return f"{columns} AND {fits} AND rowid > ?1 ORDER BY rowid LIMIT {limit}"

    # --- values ---

    def parameter(self, vector: Vector) -> Any:
        """A vector as a parameter of a statement."""
        return vector.tolist() if self.is_postgres else vector.astype("<f4").tobytes()

    def vectors(self, stored: Sequence[bytes], dimension: int) -> Matrix:
        """Decode vectors of the same dimension; -1 if it is not known."""
        joined = b"".join(stored)
        if not self.is_postgres:
            return np.frombuffer(joined, "<f4").reshape(len(stored), dimension)
        width = dimension if dimension < 0 else dimension + 1
        return np.frombuffer(joined, ">f4").reshape(len(stored), width)[:, 1:].astype(np.float32)


def vector_fits(dialect: Dialect) -> str:
    """The condition that a vector has the dimension stored with it."""
    if dialect is POSTGRESQL:
        return "(content_vector IS NOT NULL AND vector_dims(content_vector) = vector_dimension)"
    return "(typeof(content_vector) = 'blob' AND length(content_vector) = 4 * vector_dimension)"


def tenants_pending(queries: Iterable[VectorQueries]) -> str:
    """The tenants with rows that have no vector of the model ?1.

    The query steps from tenant to tenant in the index. Its cost does not depend on the number of rows.
    """
    following = f"SELECT min(tenant) FROM {MEMORIES.name} WHERE tenant > tenants.tenant"
    pending = " OR ".join(each.any_pending("tenants.tenant") for each in queries)
    return (
        f"WITH RECURSIVE tenants(tenant) AS (SELECT min(tenant) FROM {MEMORIES.name} UNION ALL"
        f" SELECT ({following}) FROM tenants WHERE tenants.tenant IS NOT NULL)"
        f" SELECT tenant FROM tenants WHERE tenant IS NOT NULL AND ({pending}) ORDER BY tenant"
    )
