"""Finding what is pending passes over nothing that is done: the index alone is read."""

import pytest

from recollect.testing.contract import in_event_loop

from ...sessions.postgres.database import by, sql
from ..databases import Place
from .kit import MODEL, add_turns, database_of, embed_all, vectors_of


@pytest.mark.parametrize("kind", ["entry", "turn"])
@in_event_loop
async def test_sqlite_reads_the_index_of_what_is_pending(file_place: Place, kind: str) -> None:
    async with file_place.open() as store:
        queries = vectors_of(store)._queries[kind]  # type: ignore[index]
        database = database_of(store)
        for query, parameters in (
            (queries.pending, (MODEL, "default", 5)),
            (queries.count_pending(10), (MODEL, "default")),
        ):
            plan = await database.fetch(f"EXPLAIN QUERY PLAN {query}", parameters, list)
            steps = [step for *_, step in plan if "USING" in step or step.startswith("SCAN")]
            searches = [step for step in steps if "_to_embed (tenant=? AND vector_model" in step]
            assert len(searches) == 3
            assert [step for step in steps if step not in searches and not _is_inner(step)] == []


def _is_inner(step: str) -> bool:
    return step.startswith("SCAN part") or step == "SCAN pending"


@pytest.mark.parametrize("kind", ["entry", "turn"])
@pytest.mark.parametrize("scope", ["read", "all_here"])
@in_event_loop
async def test_sqlite_reads_one_memory_by_its_own_index(file_place: Place, kind: str, scope: str) -> None:
    async with file_place.open() as store:
        queries = vectors_of(store)._queries[kind]  # type: ignore[index]
        query = queries.read if scope == "read" else queries.all_here(8)
        parameters = ("memory", MODEL) if scope == "read" else (b"", MODEL, "default", "memory")
        plan = await database_of(store).fetch(f"EXPLAIN QUERY PLAN {query}", parameters, list)
        assert "(memory_id=?)" in plan[0][-1]


@in_event_loop
async def test_postgres_reads_the_index_of_what_is_pending(empty_postgres: str) -> None:
    async with Place(by("asyncpg", empty_postgres), create_tables=True).open() as store:
        vectors = vectors_of(store)
        await add_turns(store, "ada", [f"{number}" * 50 for number in range(500)])
        await embed_all(vectors)
        sql(empty_postgres, "ANALYZE")
        query = vectors._queries["turn"].pending.replace("?1", f"'{MODEL}'").replace("?2", "'default'")
        query = query.replace("?3", "20")
        plan = str(sql(empty_postgres, f"EXPLAIN {query}"))
        assert plan.count("_to_embed") == 3
        assert "Seq Scan" not in plan
