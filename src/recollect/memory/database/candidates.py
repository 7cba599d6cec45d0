"""Finds candidates for a search over many users, by the indexes of PostgreSQL.

The nearest vectors come from the HNSW index of their dimension. Texts with the words of a question come from
an index of terms: entries by `memory_terms`, messages by the hashes in their search records. Both searches
stop after a number of rows, so a common word costs no more than a rare one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...sql.columns import time_to_column
from ...sql.scripts import Script, Statement
from ..search.filters import RequestedFilters
from ..search.records import hashes_of
from .access import MemoryDatabase, column_now
from .dialect import POSTGRESQL
from .overviews import in_scope
from .schema import (
    CONVERSATIONS,
    EVIDENCE,
    MEMORIES,
    MESSAGE_RECORDS,
    MESSAGES,
    TERMS,
)
from .vector_queries import SOURCES, Kind, Vector

_MOST_NEAREST = 200
_WIDTH = 400  # of the index scan (`hnsw.ef_search`): texts of one form are near each other, and easily missed
_MOST_BY_WORDS = 200
_MOST_COMPARED = 1000  # texts with terms of the question that are compared by their vectors, too
_SHARE_OF_WORDS = 0.5  # of the words, if that of the similarity is 1: about as in the ranking
_USUAL_DISTANCE = 0.7
_MOST_OF_TERM = 3000  # texts with a term that are looked at
_MOST_TERMS = 24
_MOST_SCANNED = 40_000  # vectors that the index scan may read until enough pass the filters
_SAMPLE = 1000

Key = tuple[str, ...]


@dataclass(frozen=True)
class Scope:
    """The memories that a search covers: all of a tenant, those of an agent, or those of some users."""

    tenant: str
    agent_id: str | None = None
    user_keys: tuple[str, ...] | None = None

    @property
    def parameters(self) -> tuple[str | None, str | None]:
        """The agent and the users, as the parameters of `overviews.in_scope`."""
        return self.agent_id, None if self.user_keys is None else json.dumps(self.user_keys)

    @property
    def is_tenant(self) -> bool:
        """Whether it covers all of the tenant."""
        return self.agent_id is None and self.user_keys is None


@dataclass(frozen=True)
class Candidates:
    """The found rows: the id of the memory of each, by its key."""

    memories: Mapping[Key, str] = field(default_factory=dict)
    counted: Mapping[str, int] = field(default_factory=dict)
    """In how many texts each of some terms is, where all of them were looked at."""
    is_indexed: bool = True
    """Whether there was an index for vectors of this dimension, or no vector."""


def count_up_to(kind: Kind, scope: Scope, most: int, database: MemoryDatabase) -> Statement:
    """The statement that counts the current entries, or the messages, of a scope, up to a number."""
    source, ids = SOURCES[kind], f"SELECT memory_id FROM {MEMORIES.name} WHERE "
    among = (
        "" if scope.is_tenant else f" AND memory_id IN ({ids}{in_scope(database.dialect, '?1', '?2', '?3')})"
    )
    rows = f"SELECT 1 FROM {source.table.name} WHERE tenant = ?1 AND {source.searched}{among} LIMIT {most}"
    parameters = (scope.tenant,) if scope.is_tenant else (scope.tenant, *scope.parameters)
    return Statement(f"SELECT count(*) FROM ({rows}) AS counted", parameters)


def sampled(kind: Kind, tenant: str, documents: int) -> Statement:
    """The statement that chooses documents of a tenant at random, by their keys and memories."""
    source = SOURCES[kind]
    percent = min(100.0, 100 * _SAMPLE / max(1, documents))
    return Statement(
        f"SELECT {source.listed_key}, memory_id FROM {source.table.name} TABLESAMPLE SYSTEM ({percent:f})"
        f" WHERE tenant = ?1 AND {source.searched} LIMIT {4 * _SAMPLE}",
        (tenant,),
    )


@dataclass
class _Parameters:
    """The parameters of a statement, which are numbered as they are added."""

    values: list[Any] = field(default_factory=list)

    def add(self, value: Any) -> str:
        """Add a parameter and return how the statement refers to it."""
        self.values.append(value)
        return f"?{len(self.values)}"


def find(
    kind: Kind,
    scope: Scope,
    request: RequestedFilters,
    terms: Sequence[str],
    vector: Vector | None,
    model: str | None,
    documents: int,
) -> Script[Candidates]:
    """The candidates for a question, by its terms and its vector. The collection has so many documents."""
    memories: dict[Key, str] = {}
    counted: dict[str, int] = {}
    is_indexed = True
    if vector is not None and model is not None:
        name = SOURCES[kind].table.nearest_name(len(vector))
        ((is_indexed, *_),) = yield Statement(_tune(name))
        rows = yield _nearest(kind, scope, request, vector, model)
        memories |= {tuple(row[:-1]): row[-1] for row in rows}
    if terms:
        rows = yield _with_terms(kind, scope, request, list(terms)[:_MOST_TERMS], documents, vector, model)
        for *key, memory_id, term, count in rows:
            if term is None:
                memories[tuple(key)] = memory_id
            elif count < _MOST_OF_TERM:
                counted[term] = count
    return Candidates(memories, counted, bool(is_indexed))


def _tune(index: str) -> str:
    return (
        f"SELECT EXISTS (SELECT 1 FROM pg_index WHERE indexrelid = to_regclass('{index}') AND indisvalid),"
        " set_config('hnsw.iterative_scan', 'relaxed_order', true),"
        f" set_config('hnsw.ef_search', '{_WIDTH}', true),"
        f" set_config('hnsw.max_scan_tuples', '{_MOST_SCANNED}', true)"
    )


def _nearest(kind: Kind, scope: Scope, request: RequestedFilters, vector: Vector, model: str) -> Statement:
    source, given = SOURCES[kind], _Parameters()
    half = f"halfvec({len(vector)})"
    asked = f"CAST(CAST({given.add(vector.tolist())} AS REAL[]) AS {half})"
    conditions = [
        f"found.vector_model = {given.add(model)}",
        f"found.vector_dimension = {len(vector)}",
        *_conditions(kind, scope, request, given),
    ]
    return Statement(
        f"SELECT {source.listed_key}, memory_id FROM {source.table.name} AS found"
        f" WHERE {' AND '.join(conditions)} ORDER BY CAST(content_vector AS {half}) <=> {asked}"
        f" LIMIT {_MOST_NEAREST}",
        given.values,
    )


def _with_terms(
    kind: Kind,
    scope: Scope,
    request: RequestedFilters,
    terms: list[str],
    documents: int,
    vector: Vector | None,
    model: str | None,
) -> Statement:
    """The texts with the most and the rarest of some terms; then each term with the number of its texts.

    Of texts with equal terms, those that are nearer to the question come first.
    """
    source, given = SOURCES[kind], _Parameters()
    hashes = hashes_of(terms).view(np.int32).tolist()
    asked = given.add(json.dumps(list(zip(terms, hashes, strict=True))))
    tenant = given.add(scope.tenant)
    lookup = _ENTRIES_WITH_TERM if kind == "entry" else _MESSAGES_WITH_TERM
    key = "memory_id, position" if kind == "entry" else "conversation_id, message_id"
    shared = " AND ".join(f"found.{each} = rare.{each}" for each in key.split(", "))
    conditions = " AND ".join(_conditions(kind, scope, request, given))
    nothing = ", ".join("NULL" for _ in (*source.key, "memory_id"))
    chosen = ", ".join(f"found.{each}" for each in (*source.key, "memory_id"))
    # Without filters, nearly all rows stay: only the best are looked up.
    is_open = scope.is_tenant and request == RequestedFilters()
    best = f" ORDER BY weight DESC LIMIT {_MOST_COMPARED}" if is_open else ""
    order = "weight / max(weight) OVER ()"
    if vector is not None:
        order = f"{_SHARE_OF_WORDS} * {order} - {_distance(vector, model, given)}"
    return Statement(
        f"WITH asked AS (SELECT value ->> 0 AS term, CAST(value ->> 1 AS INTEGER) AS hash"
        f" FROM json_array_elements(CAST({asked} AS JSON))),"
        f" postings AS MATERIALIZED (SELECT asked.term, holding.* FROM asked CROSS JOIN LATERAL"
        f" ({lookup.format(tenant=tenant)} LIMIT {_MOST_OF_TERM}) AS holding),"
        " counted AS (SELECT term, count(*) AS texts FROM postings GROUP BY term),"
        f" rare AS (SELECT {key}, sum(ln(1 + {max(documents, 1)}.0 / texts)) AS weight"
        f" FROM postings JOIN counted USING (term) GROUP BY {key}{best})"
        f" (SELECT {chosen}, NULL AS term, NULL AS texts"
        f" FROM rare JOIN {source.table.name} AS found ON {shared} WHERE {conditions}"
        f" ORDER BY {order} DESC LIMIT {_MOST_BY_WORDS})"
        f" UNION ALL SELECT {nothing}, term, texts FROM counted",
        given.values,
    )


def _distance(vector: Vector, model: str | None, given: _Parameters) -> str:
    """The distance of a row from a vector; a middle one if its vector cannot be compared."""
    asked = f"CAST(CAST({given.add(vector.tolist())} AS REAL[]) AS vector)"
    fits = f"found.vector_model = {given.add(model)} AND found.vector_dimension = {len(vector)}"
    return f"CASE WHEN {fits} THEN found.content_vector <=> {asked} ELSE {_USUAL_DISTANCE} END"


_ENTRIES_WITH_TERM = (
    f"SELECT memory_id, position FROM {TERMS.name} WHERE tenant = {{tenant}} AND term = asked.term"
)
_MESSAGES_WITH_TERM = (
    f"SELECT conversation_id, message_id FROM {MESSAGE_RECORDS.name}"
    f" WHERE {MESSAGE_RECORDS.numbers_in_row} @> ARRAY[asked.hash] AND tenant = {{tenant}}"
)


# --- conditions ---


def _conditions(kind: Kind, scope: Scope, request: RequestedFilters, given: _Parameters) -> list[str]:
    """The conditions for the rows `found` that a search may return.

    A query in a condition is compared with TRUE: PostgreSQL then filters the rows of an index by it, and does
    not join tables first.
    """
    conditions = [f"found.tenant = {given.add(scope.tenant)}", SOURCES[kind].searched]
    if not scope.is_tenant:
        agent_id, users = map(given.add, scope.parameters)
        owned = in_scope(POSTGRESQL, given.add(scope.tenant), agent_id, users)
        memories = f"SELECT memory_id FROM {MEMORIES.name} WHERE {owned}"
        conditions.append(f"(found.memory_id IN ({memories})) IS TRUE")
    if kind == "entry":
        return [*conditions, *_conditions_of_entries(request, given)]
    return [*conditions, *_conditions_of_messages(request, given)]


def _conditions_of_entries(request: RequestedFilters, given: _Parameters) -> list[str]:
    conditions = [f"(expires_at IS NULL OR expires_at > CAST({given.add(column_now())} AS TIMESTAMPTZ))"]
    if request.content_type is not None:
        conditions.append(f"content_type = {given.add(request.content_type)}")
    for time, compare in ((request.since, ">="), (request.until, "<=")):
        if time is not None:
            at, day = given.add(time_to_column(time)), given.add(time.date().isoformat())
            # A month or a year is compared by what it has of a date; the ranking compares exactly.
            conditions.append(
                f"CASE WHEN valid_from IS NULL THEN learned_at {compare} CAST({at} AS TIMESTAMPTZ)"
                f" ELSE valid_from {compare} left({day}, length(valid_from)) END"
            )
    if request.has_labels:
        own, said = (_labels(request, given, each) for each in ("found", "told"))
        conditions.append(
            f"(({own}) OR EXISTS (SELECT 1 FROM {EVIDENCE.name} AS cited JOIN {CONVERSATIONS.name} AS told"
            f" ON told.conversation_id = cited.conversation_id"
            f" WHERE cited.content_id = found.content_id AND {said})) IS TRUE"
        )
    if request.has_speaker:
        conditions.append(
            f"(EXISTS (SELECT 1 FROM {EVIDENCE.name} AS cited JOIN {MESSAGES.name} AS said"
            " ON said.conversation_id = cited.conversation_id AND said.message_id = cited.message_id"
            f" WHERE cited.content_id = found.content_id AND {_speaker(request, given, 'said')})) IS TRUE"
        )
    return conditions


def _conditions_of_messages(request: RequestedFilters, given: _Parameters) -> list[str]:
    conditions = [_speaker(request, given, "found")] if request.has_speaker else []
    for time, compare in ((request.since, ">="), (request.until, "<=")):
        if time is not None:
            conditions.append(
                f"found.created_at {compare} CAST({given.add(time_to_column(time))} AS TIMESTAMPTZ)"
            )
    if request.session_id is not None or request.has_labels:
        labels = _labels(request, given, "told")
        session = (
            "TRUE" if request.session_id is None else f"told.session_id = {given.add(request.session_id)}"
        )
        conditions.append(
            f"(EXISTS (SELECT 1 FROM {CONVERSATIONS.name} AS told"
            f" WHERE told.conversation_id = found.conversation_id AND {session} AND {labels})) IS TRUE"
        )
    return conditions


def _speaker(request: RequestedFilters, given: _Parameters, row: str) -> str:
    role = "TRUE" if request.role is None else f"{row}.role = {given.add(request.role)}"
    name = "TRUE" if request.name is None else f"coalesce({row}.name, {row}.role) = {given.add(request.name)}"
    return f"{role} AND {name}"


def _labels(request: RequestedFilters, given: _Parameters, row: str) -> str:
    """The condition for rows with all wanted tags, and with equal metadata under the wanted keys."""
    conditions = ["TRUE"]
    if request.tags:
        conditions.append(f"{row}.tags @> CAST({given.add(json.dumps(list(request.tags)))} AS JSONB)")
    for key, value in request.metadata.items():
        wanted = f"CAST({given.add(json.dumps(value))} AS JSONB)"
        conditions.append(f"{row}.metadata -> CAST({given.add(key)} AS TEXT) = {wanted}")
    return " AND ".join(conditions)
