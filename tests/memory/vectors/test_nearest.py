"""The nearest vectors: exact within a memory, the same on every database, and never of what does not fit."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from recollect.memory.database.vector_cache import CacheKey, KeyedVectors, VectorCache
from recollect.memory.database.vector_queries import Kind
from recollect.memory.database.vectors import NewVector, Vectors, turn_id
from recollect.memory.store import MemoryStore
from recollect.testing.contract import in_event_loop

from ...sessions.postgres.database import by, sql
from ..databases import Place
from .kit import MODEL, add_entries, add_turns, direction_of, embed_all, memory_of, vectors_of

WIDE = "wide/512"


def cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


async def texts_of(store: MemoryStore, found: Sequence[tuple[str, float]]) -> list[str]:
    entries = [await store.get_entry(content_id) for content_id, _ in found]
    return [entry.text for entry in entries if entry is not None]


@pytest.mark.parametrize("scoped", [True, False])
@in_event_loop
async def test_the_nearest_come_first_with_their_cosine(place: Place, scoped: bool) -> None:
    texts = [f"text {number}" for number in range(40)]
    async with place.open() as store:
        vectors = vectors_of(store)
        await add_entries(store, "ada", texts)
        await embed_all(vectors)
        memory = await memory_of(store, "ada") if scoped else None
        asked = direction_of("a question")
        found = await vectors.nearest("entry", asked, MODEL, tenant="default", memory_id=memory, limit=7)
        expected = sorted(texts, key=lambda text: -cosine(direction_of(text), asked))[:7]
        assert await texts_of(store, found) == expected
        assert [score for _, score in found] == pytest.approx(
            [cosine(direction_of(text), asked) for text in expected], abs=1e-5
        )


async def answers(place: Place) -> list[list[tuple[str, float]]]:
    """What a database finds among vectors of which many are alike, and some the same."""
    async with place.open() as store:
        vectors = vectors_of(store)
        messages = [
            {"role": "user", "content": f"{number % 90}", "message_id": f"m{number:03}"}
            for number in range(150)
        ]
        await store.record_conversation("agent", "ada", messages, conversation_id="c")
        pending = await vectors.pending(WIDE, 1000)
        base = direction_of("base", 512)
        await vectors.store(
            WIDE, [NewVector(each, base + 0.3 * direction_of(each.text, 512)) for each in pending]
        )
        memory = await memory_of(store, "ada")
        asked = [base + 0.3 * direction_of(f"question {number}", 512) for number in range(12)]
        return [
            await vectors.nearest("turn", each, WIDE, tenant="default", memory_id=memory) for each in asked
        ]


@in_event_loop
async def test_databases_agree_to_the_last_digit(tmp_path: Path, empty_postgres: str) -> None:
    in_file = await answers(Place(str(tmp_path / "memory.db")))
    assert all(len(found) == 10 for found in in_file)
    assert await answers(Place(by("asyncpg", empty_postgres), create_tables=True)) == in_file
    sql(empty_postgres, "TRUNCATE memories CASCADE")
    assert await answers(Place(by("psycopg", empty_postgres), create_tables=True)) == in_file


@in_event_loop
async def test_what_is_equally_near_comes_in_the_order_of_ids(place: Place) -> None:
    async with place.open() as store:
        vectors = vectors_of(store)
        said = await add_turns(store, "ada", ["the same"] * 30)
        await embed_all(vectors)
        ids = sorted(turn_id(said.conversation_id, message.message_id) for message in said.messages)
        memory = await memory_of(store, "ada")
        for scope in (memory, None):
            found = await vectors.nearest(
                "turn", direction_of("the same"), MODEL, tenant="default", memory_id=scope, limit=5
            )
            assert [score for _, score in found] == [1.0] * 5
            if scope is not None:
                assert [one for one, _ in found] == ids[:5]


@pytest.mark.parametrize("scoped", [True, False])
@in_event_loop
async def test_vectors_of_another_model_or_dimension_are_never_compared(place: Place, scoped: bool) -> None:
    async with place.open() as store:
        vectors = vectors_of(store)
        ids = await add_entries(store, "ada", ["a", "b", "c"])
        for text, model, dimension in (("a", MODEL, 8), ("b", "other/8", 8), ("c", "small/4", 4)):
            (pending,) = [each for each in await vectors.pending(model, 10) if each.text == text]
            await vectors.store(model, [NewVector(pending, direction_of(text, dimension))])
        scope = await memory_of(store, "ada") if scoped else None

        async def nearest(model: str, dimension: int) -> list[str]:
            asked = direction_of("x", dimension)
            found = await vectors.nearest("entry", asked, model, tenant="default", memory_id=scope)
            return [one for one, _ in found]

        assert await nearest(MODEL, 8) == [ids["a"]]
        assert await nearest("other/8", 8) == [ids["b"]]
        assert await nearest("small/4", 4) == [ids["c"]]
        assert await nearest(MODEL, 4) == []


@in_event_loop
async def test_in_the_middle_of_re_embedding_each_model_finds_its_own(place: Place) -> None:
    async with place.open() as store:
        vectors = vectors_of(store)
        await add_turns(store, "ada", ["one", "two", "three"])
        await embed_all(vectors)
        memory = await memory_of(store, "ada")
        (first,) = await vectors.pending("next/8", 1)
        await vectors.store("next/8", [NewVector(first, direction_of(first.text))])

        async def count(model: str) -> int:
            asked = direction_of("one")
            return len(await vectors.nearest("turn", asked, model, tenant="default", memory_id=memory))

        assert (await count(MODEL), await count("next/8")) == (2, 1)
        await embed_all(vectors, "next/8")
        assert (await count(MODEL), await count("next/8")) == (0, 3)


@pytest.mark.parametrize("kind", ["entry", "turn"])
@in_event_loop
async def test_memories_and_tenants_see_their_own(place: Place, kind: Kind) -> None:
    async with place.open() as store, place.open(tenant="other") as other:
        vectors = vectors_of(store)
        for each, user in ((store, "ada"), (store, "bob"), (other, "ada")):
            await add_entries(each, user, ["a"])
            await add_turns(each, user, ["a"])
            await embed_all(vectors_of(each))
        memory = await memory_of(store, "ada")

        async def count(tenant: str, memory_id: str | None) -> int:
            asked = direction_of("a")
            return len(await vectors.nearest(kind, asked, MODEL, tenant=tenant, memory_id=memory_id))

        assert await count("default", memory) == 1
        assert await count("other", memory) == 0
        assert await count("default", None) == 2
        assert await count("' OR tenant LIKE '%", None) == 0


@in_event_loop
async def test_what_is_deleted_or_retired_is_found_no_more(place: Place) -> None:
    async with place.open() as store:
        vectors = vectors_of(store)
        ids = await add_entries(store, "ada", ["goes", "retires", "stays"])
        await embed_all(vectors)
        memory = await memory_of(store, "ada")

        async def found(scope: str | None) -> set[str]:
            near = await vectors.nearest("entry", direction_of("x"), MODEL, tenant="default", memory_id=scope)
            return {one for one, _ in near}

        assert await found(memory) == await found(None) == set(ids.values())
        await store.delete_entry(ids["goes"])
        await store.edit_entry(ids["retires"], "a new text")
        assert await found(memory) == await found(None) == {ids["stays"]}


@pytest.mark.parametrize("bad", [[float("nan")] * 8, [0.0] * 8, [], [[1.0]]], ids=str)
@in_event_loop
async def test_a_question_without_a_direction_is_refused(file_place: Place, bad: list[float]) -> None:
    async with file_place.open() as store:
        with pytest.raises(ValueError, match="a vector must"):
            await vectors_of(store).nearest("entry", bad, MODEL, tenant="default")


@in_event_loop
async def test_none_are_found_where_none_are_wanted(place: Place) -> None:
    async with place.open() as store:
        vectors = vectors_of(store)
        await add_entries(store, "ada", ["a"])
        await embed_all(vectors)
        assert await vectors.nearest("entry", direction_of("a"), MODEL, tenant="default", limit=0) == []


@in_event_loop
async def test_all_of_a_tenant_are_compared_however_many_blocks_they_are(file_place: Place) -> None:
    async with file_place.open() as store:
        vectors = vectors_of(store)
        texts = [f"{number}" for number in range(36)]
        await add_entries(store, "ada", texts)
        pending = await vectors.pending("huge/65536", 1000)
        made = {text: direction_of(text, 65536) for text in texts}  # 16 of which are a block
        await vectors.store("huge/65536", [NewVector(each, made[each.text]) for each in pending])
        for wanted in ("0", "20", "35"):
            found = await vectors.nearest("entry", made[wanted], "huge/65536", tenant="default", limit=1)
            assert await texts_of(store, found) == [wanted]


def named(memory_id: str) -> CacheKey:
    return CacheKey(memory_id, "turn", MODEL, "default", 8)


def test_vectors_are_held_up_to_a_number_of_bytes() -> None:
    held = VectorCache(max_bytes=100)
    small = KeyedVectors([("a",)], np.zeros((1, 10), np.float32))
    first, second, third, large = map(named, ("first", "second", "third", "large"))
    held.put(first, 1, small)
    held.put(second, 1, small)
    assert held.get(first, 1) is small
    held.put(third, 1, small)
    assert held.get(second, 1) is None, "it was not asked for the longest"
    assert held.get(first, 1) is small
    assert held.get(first, 2) is None, "another stamp is another state"
    held.put(large, 1, KeyedVectors([], np.zeros((10, 10), np.float32)))
    assert held.get(large, 1) is None


def test_what_is_held_of_a_memory_can_be_let_go() -> None:
    held = VectorCache()
    small = KeyedVectors([("a",)], np.zeros((1, 10), np.float32))
    held.put(named("goes"), 1, small)
    held.put(named("stays"), 1, small)
    held.clear("goes")
    assert held.get(named("goes"), 1) is None
    assert held.get(named("stays"), 1) is small


@in_event_loop
async def test_a_large_memory_is_compared_too(file_place: Place) -> None:
    async with file_place.open() as store:
        vectors = vectors_of(store)
        await add_turns(store, "ada", [f"{number}" for number in range(20)])
        memory = await memory_of(store, "ada")
        await embed_all(vectors, "huge/65536", 65536)
        asked = direction_of("7", 65536)
        for _ in range(2):  # read, and then held
            found = await vectors.nearest("turn", asked, "huge/65536", tenant="default", memory_id=memory)
            assert (len(found), found[0][1]) == (10, 1.0)
        vectors.forget(memory)
        assert await vectors.nearest("turn", asked, "huge/65536", tenant="default", memory_id=memory) == found


# --- the index of PostgreSQL ---


async def fill(vectors: Vectors, store: MemoryStore, user: str, count: int) -> None:
    await add_turns(store, user, [f"{user} {number}" for number in range(count)])
    await embed_all(vectors, WIDE, 512)


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
@in_event_loop
async def test_across_a_tenant_the_index_can_be_used(empty_postgres: str, driver: str) -> None:
    async with Place(by(driver, empty_postgres), create_tables=True).open() as store:
        vectors = vectors_of(store)
        await fill(vectors, store, "ada", 60)
        found = await vectors.nearest("turn", direction_of("ada 7", 512), WIDE, tenant="default")
        assert len(found) == 10
        assert found[0][1] == pytest.approx(1.0)
        query = vectors._queries["turn"].nearest_by_index(512, 10)
        literal = f"'{{{','.join(map(str, direction_of('ada 7', 512)))}}}'"
        for name, value in (("?1", literal), ("?2", f"'{WIDE}'"), ("?3", "'default'")):
            query = query.replace(name, value)
        no_sorting = (
            f"{empty_postgres}?options=-c%20enable_sort%3Doff"  # which so few rows would be cheaper by
        )
        plan = sql(no_sorting, f"EXPLAIN {query}")
        assert "recollect_conversation_messages_nearest_512" in str(plan)


@in_event_loop
async def test_without_the_index_all_are_compared_and_that_is_said_once(
    empty_postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Place(by("asyncpg", empty_postgres), create_tables=True).open() as store:
        vectors = vectors_of(store)
        await add_entries(store, "ada", ["secret words", "others"])
        await embed_all(vectors)
        with caplog.at_level(logging.WARNING, "recollect.memory"):
            for _ in range(2):
                found = await vectors.nearest("entry", direction_of("others"), MODEL, tenant="default")
                assert len(found) == 2
        assert [record.getMessage() for record in caplog.records] == [
            "no index for vectors of 8 dimensions (entry): all are compared"
        ]


@in_event_loop
async def test_a_small_tenant_is_found_among_large_ones(empty_postgres: str) -> None:
    place = Place(by("asyncpg", empty_postgres), create_tables=True)
    async with place.open() as store, place.open(tenant="small") as small:
        vectors = vectors_of(store)
        await fill(vectors, store, "ada", 60)
        await fill(vectors_of(small, "small"), small, "bob", 3)
        found = await vectors.nearest("turn", direction_of("ada 7", 512), WIDE, tenant="small")
        assert len(found) == 3


@pytest.mark.parametrize("dimension", [1536, 3072])  # the latter does not fit on a page of PostgreSQL
@in_event_loop
async def test_vectors_of_any_dimension_are_kept(place: Place, dimension: int) -> None:
    model = f"any/{dimension}"
    async with place.open() as store:
        vectors = vectors_of(store)
        await add_entries(store, "ada", ["a", "b"])
        await embed_all(vectors, model, dimension)
        found = await vectors.nearest("entry", direction_of("b", dimension), model, tenant="default")
        assert await texts_of(store, found) == ["b", "a"]
