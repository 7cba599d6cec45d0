"""A search over the entries of many users on PostgreSQL, beside pgvector alone and a comparison of all.

Entries are made from sentences and embedded by the local embedder, and their rows are copied in bulk. Half of
the questions are about a thing that an entry names, in other words than the entry's; the overlap is with the
ten best of a ranking of all entries.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from statistics import quantiles
from time import perf_counter
from typing import Any

import psycopg

from recollect.ids import new_id
from recollect.memory.database.entries import distinctive_terms, text_key
from recollect.memory.database.memories import owner_key, user_key
from recollect.memory.database.schema import CONTENTS, MEMORIES, TERMS
from recollect.memory.database.vectors import model_of
from recollect.memory.search.embedders.local import local_embedder
from recollect.memory.store import MemoryStore, across
from recollect.sql.sqlalchemy.metadata import nearest_index
from recollect.testing.servers.postgres import PostgresServer

from ..harness import Measure, Metric, Sample, Sampler
from ..memory.stores import url_of
from ..memory.texts import FORMS, sentences, told

_METRICS = (
    Metric("median"),
    Metric("slowest of 50"),
    Metric("overlap with exact", "", more_is_better=True),
    Metric("build of the index"),
)
_TENANT, _AGENT, _OF_USER, _AT_ONCE = "default", "agent", 10, 5000
_QUESTIONS, _COMPARED = 50, 20
_TAGGED = 100  # every so-manieth entry has the tag
_TIME = datetime(2026, 1, 1, tzinfo=UTC)
_SETTINGS = {"maintenance_work_mem": "2GB", "shared_buffers": "2GB", "max_wal_size": "8GB"}
_RAW = (
    "SELECT content_id FROM memory_contents WHERE vector_dimension = 512 ORDER BY"
    " CAST(content_vector AS halfvec(512)) <=> CAST(%s::real[] AS halfvec(512)) LIMIT 10"
)
_WHOLE = (
    "SELECT content_id FROM memory_contents WHERE tenant = 'default'"
    " ORDER BY content_vector <=> CAST(%s::real[] AS vector) LIMIT 10"
)
Ask = Callable[[str], Awaitable[Sequence[str]]]


def users(size: int, repeats: int) -> Measure:
    """Search so many entries of a tenth as many users."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        with PostgresServer(settings=_SETTINGS) as server:
            built = await _fill(server.url, size)
            async with MemoryStore(url_of(server.url), workers=0) as store:
                yield await _contenders(server.url, store, size, built)

    what = f"search {size:,} entries of {size // _OF_USER:,} users"
    baselines = ("pgvector alone",)
    return Measure("users", what, _METRICS, repeats, open_all, baselines)


async def _contenders(url: str, store: MemoryStore, size: int, built: float) -> Mapping[str, Sampler]:
    ours, tagged = partial(_search, store), partial(_search, store, tags=["rare"])
    questions = _questions(size)
    exact = {question: await _exactly(ours, question) for question in questions[:_COMPARED]}
    exact_tagged = {question: await _exactly(tagged, question) for question in questions[:_COMPARED]}
    embedder = local_embedder()

    async def raw(sql: str, question: str) -> list[str]:
        (vector,) = await embedder.embed([question])
        rows = await asyncio.to_thread(_fetch, url, sql, [float(each) for each in vector])
        return [row[0] for row in rows]

    return {
        "recollect": partial(_sample, ours, questions, exact, built),
        "recollect, 1 % by tag": partial(_sample, tagged, questions, exact_tagged, built),
        "pgvector alone": partial(_sample, partial(raw, _RAW), questions, exact, built),
        "all vectors compared": partial(_sample, partial(raw, _WHOLE), questions[:_COMPARED], exact, built),
    }


async def _sample(
    ask: Ask, questions: Sequence[str], exact: Mapping[str, Sequence[str]], built: float
) -> Sample:
    took, shared = [], []
    for question in questions:
        began = perf_counter()
        found = await ask(question)
        took.append(perf_counter() - began)
        if question in exact:
            shared.append(len({*found} & {*exact[question]}) / max(1, len(exact[question])))
    median, last = quantiles(took, n=2)[0], max(took)
    overlap = sum(shared) / len(shared)
    return {
        "median": median,
        "slowest of 50": last,
        "overlap with exact": overlap,
        "build of the index": built,
    }


async def _search(store: MemoryStore, question: str, **filters: Any) -> list[str]:
    found = await store.search_memories_of_users(question, **filters)
    return [hit.entry.content_id for hit in found.hits]


async def _exactly(ask: Ask, question: str) -> Sequence[str]:
    """The same with all entries in memory."""
    few = across._MOST_ON_SERVER
    across._MOST_ON_SERVER = 2**40
    try:
        return await ask(question)
    finally:
        across._MOST_ON_SERVER = few


def _questions(size: int) -> list[str]:
    """Questions about what some entries say."""
    chance = random.Random("questions")
    facts = list(islice(sentences(size), size))
    usual = set(" ".join(FORMS).split())
    chosen = [facts[chance.randrange(size)].split() for _ in range(_QUESTIONS)]
    forms = ("Who has to do with the {} {}?", "Whom did the {} with {} concern?")
    own = [[word for word in words if word not in usual] for words in chosen]
    return [chance.choice(forms).format(*chance.sample(words, 2)) for words in own]


def _fetch(url: str, sql: str, vector: list[float]) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(sql, [vector]).fetchall()


# --- filling ---


async def _fill(url: str, size: int) -> float:
    """Copy the rows, and build the index of vectors; returns how long that took."""
    async with MemoryStore(url_of(url), workers=0, create_tables=True, embedder=None) as store:
        await store.coverage()
    embedder, facts, start = local_embedder(), sentences(size), 0
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP INDEX {CONTENTS.nearest_name(embedder.dimensions)}")
        while start < size:
            texts = [told(fact) for fact in islice(facts, min(_AT_ONCE, size - start))]
            vectors = await embedder.embed(texts)
            await asyncio.to_thread(_copy, connection, start, texts, vectors, model_of(embedder))
            start += len(texts)
        connection.execute("VACUUM ANALYZE")
        began = perf_counter()
        connection.execute(nearest_index(CONTENTS, embedder.dimensions))
        return perf_counter() - began


def _copy(
    connection: psycopg.Connection[Any], start: int, texts: list[str], vectors: Any, model: str
) -> None:
    memories, entries, terms = [], [], []
    for place, (text, vector) in enumerate(zip(texts, vectors, strict=True), start):
        number, position = divmod(place, _OF_USER)
        memory_id = f"memory-{number}"
        if not position:
            memories.append(_memory(memory_id, f"user-{number}"))
        terms += [(memory_id, _TENANT, term, position) for term in distinctive_terms(text)]
        tags = json.dumps(["rare"]) if place % _TAGGED == 0 else None
        numbers = "[" + ",".join(f"{each:.5f}" for each in vector) + "]"
        entry = (new_id(), _TENANT, memory_id, position, "event", text, "{}", text_key(text), 0.9)
        entries.append((*entry, _TIME, numbers, model, len(vector), tags))
    _write(connection, MEMORIES.name, MEMORIES.column_names, memories)
    _write(connection, CONTENTS.name, _COLUMNS, entries)
    _write(connection, TERMS.name, ("memory_id", "tenant", "term", "position"), terms)


_COLUMNS = (
    *("content_id", "tenant", "memory_id", "position", "content_type", "content_text", "content_data"),
    *("text_key", "confidence", "learned_at", "content_vector", "vector_model", "vector_dimension", "tags"),
)


def _memory(memory_id: str, user_id: str) -> tuple[Any, ...]:
    keys = (owner_key(_TENANT, _AGENT, user_id), user_key(_TENANT, user_id))
    return (memory_id, _TENANT, _AGENT, user_id, *keys, _TIME, _TIME, 1, _OF_USER, 1, 1)


def _write(
    connection: psycopg.Connection[Any], table: str, columns: Sequence[str], rows: Iterator[Any] | list[Any]
) -> None:
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy,
    ):
        for row in rows:
            copy.write_row(row)
