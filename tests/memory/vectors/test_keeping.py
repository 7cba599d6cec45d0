"""Which texts have no vector yet, and keeping the vectors of those that had none."""

import asyncio

import numpy as np
import psycopg
import pytest

from recollect.memory.database.vectors import NewVector, Pending, turn_id, turn_of
from recollect.memory.store import MemoryStore
from recollect.sql.scripts import Statement, run_all
from recollect.testing.contract import in_event_loop

from ...sessions.postgres.database import until_somebody_waits
from ..databases import Place
from .kit import MODEL, add_entries, add_turns, database_of, direction_of, embed_all, memory_of, vectors_of


async def stamps(store: MemoryStore, user: str) -> tuple[int, int]:
    sql = "SELECT entries_stamp, turns_stamp FROM memories WHERE memory_id = ?1"
    rows = await database_of(store).fetch(sql, (await memory_of(store, user),), list)
    return rows[0][0], rows[0][1]


def texts(pending: list[Pending]) -> list[str]:
    return sorted(each.text for each in pending)


@in_event_loop
async def test_what_was_learned_and_said_is_pending_until_it_has_a_vector(place: Place) -> None:
    async with place.open() as store:
        vectors = vectors_of(store)
        await add_entries(store, "ada", ["The user sails."])
        await add_turns(store, "ada", ["I sail.", "I ski."])
        await add_turns(store, "ada", ["Be kind."], role="system")
        assert texts(await vectors.pending(MODEL, 10)) == ["I sail.", "I ski.", "The user sails."]
        assert await vectors.count_pending(MODEL) == 3
        assert len(await vectors.pending(MODEL, 2)) == 2
        assert await embed_all(vectors) == 3
        assert await vectors.pending(MODEL, 10) == []
        assert await vectors.count_pending(MODEL) == 0


@in_event_loop
async def test_what_is_told_no_more_is_not_pending(place: Place) -> None:
    async with place.open() as store:
        ids = await add_entries(store, "ada", ["old", "new"])
        await store.edit_entry(ids["old"], "newer")
        assert texts(await vectors_of(store).pending(MODEL, 10)) == ["new", "newer"]


@in_event_loop
async def test_with_another_model_all_are_pending_those_without_a_vector_first(place: Place) -> None:
    async with place.open() as store:
        vectors = vectors_of(store)
        await add_entries(store, "ada", ["first"])
        await embed_all(vectors)
        await add_entries(store, "ada", ["second"])
        for other in ("a model before/8", "z model after/8"):
            assert [each.text for each in await vectors.pending(other, 10)] == ["second", "first"]
        assert await embed_all(vectors, "z model after/8") == 2
        assert await vectors.count_pending("z model after/8") == 0
        assert await vectors.count_pending(MODEL) == 2


@in_event_loop
async def test_vectors_come_back_as_they_were_at_length_one(place: Place) -> None:
    async with place.open() as store:
        vectors = vectors_of(store)
        ids = await add_entries(store, "ada", ["a", "b"])
        said = await add_turns(store, "ada", ["c"])
        await embed_all(vectors)
        memory = await memory_of(store, "ada")
        entries = await vectors.read("entry", memory, model=MODEL)
        assert entries.keys() == set(ids.values())
        expected = direction_of("a") / np.linalg.norm(direction_of("a"))
        assert entries[ids["a"]] == pytest.approx(expected)
        assert entries[ids["a"]].dtype == np.float32
        turns = await vectors.read("turn", memory, model=MODEL)
        assert list(turns) == [turn_id(said.conversation_id, said.messages[0].message_id)]
        assert await vectors.read("entry", memory, model="another/8") == {}
        assert await vectors.read("entry", "nobody", model=MODEL) == {}


@in_event_loop
async def test_some_vectors_are_read_by_their_ids(place: Place) -> None:
    async with place.open() as store:
        vectors = vectors_of(store)
        ids = await add_entries(store, "ada", ["a", "b"])
        said = await add_turns(store, "ada", ["c", "d"])
        other = await add_turns(store, "bob", ["e"])
        await embed_all(vectors)
        memory = await memory_of(store, "ada")
        some = await vectors.read("entry", memory, model=MODEL, ids=[ids["b"], "nothing"])
        assert list(some) == [ids["b"]]
        wanted = turn_id(said.conversation_id, said.messages[1].message_id)
        crossed = turn_id(other.conversation_id, said.messages[0].message_id)
        bobs = turn_id(other.conversation_id, other.messages[0].message_id)
        asked = [wanted, crossed, bobs, "no JSON", "[1, 2]", '["only one"]']
        assert list(await vectors.read("turn", memory, model=MODEL, ids=asked)) == [wanted]
        assert await vectors.read("turn", memory, model=MODEL, ids=[]) == {}


@in_event_loop
async def test_a_row_that_is_gone_or_says_something_else_gets_no_vector(place: Place) -> None:
    async with place.open() as store:
        vectors = vectors_of(store)
        ids = await add_entries(store, "ada", ["goes", "changes", "stays"])
        pending = await vectors.pending(MODEL, 10)
        await store.delete_entry(ids["goes"])
        say_otherwise = "UPDATE memory_contents SET content_text = 'changed' WHERE content_id = ?1"
        statement = Statement(say_otherwise, (ids["changes"],))
        await database_of(store).write(lambda: run_all([statement]))
        kept = [NewVector(each, direction_of(each.text)) for each in pending]
        assert await vectors.store(MODEL, kept) == 1
        found = await vectors.read("entry", await memory_of(store, "ada"), model=MODEL)
        assert list(found) == [ids["stays"]]


@in_event_loop
async def test_keeping_the_same_a_second_time_changes_nothing(place: Place) -> None:
    async with place.open() as store:
        vectors = vectors_of(store)
        await add_entries(store, "ada", ["a"])
        kept = [NewVector(each, direction_of("a")) for each in await vectors.pending(MODEL, 10)]
        assert await vectors.store(MODEL, kept) == 1
        before = await stamps(store, "ada")
        assert await vectors.store(MODEL, kept) == 0
        assert await stamps(store, "ada") == before
        assert await vectors.store(MODEL, []) == 0


@in_event_loop
async def test_keeping_moves_the_stamp_of_the_memories_concerned_alone(place: Place) -> None:
    async with place.open() as store:
        vectors = vectors_of(store)
        await add_entries(store, "ada", ["a"])
        await add_turns(store, "ada", ["b"])
        await add_turns(store, "bob", ["c"])
        entries, turns = await stamps(store, "ada")
        bobs = await stamps(store, "bob")
        pending = await vectors.pending(MODEL, 10)
        await vectors.store(
            MODEL, [NewVector(each, direction_of("a")) for each in pending if each.text == "a"]
        )
        assert await stamps(store, "ada") == (entries + 1, turns)
        await vectors.store(
            MODEL, [NewVector(each, direction_of("b")) for each in pending if each.text == "b"]
        )
        assert await stamps(store, "ada") == (entries + 1, turns + 1)
        assert await stamps(store, "bob") == bobs


@pytest.mark.parametrize(
    "bad", [[1.0, float("nan")], [1.0, float("inf")], [0.0, 0.0], [[1.0, 2.0]], 1.0], ids=str
)
@in_event_loop
async def test_what_is_no_direction_is_refused_and_nothing_is_kept(file_place: Place, bad: object) -> None:
    async with file_place.open() as store:
        vectors = vectors_of(store)
        await add_entries(store, "ada", ["a", "b"])
        first, second = await vectors.pending(MODEL, 10)
        with pytest.raises(ValueError, match="a vector must"):
            await vectors.store(MODEL, [NewVector(first, direction_of("a")), NewVector(second, bad)])  # type: ignore[arg-type]
        assert await vectors.count_pending(MODEL) == 2


@in_event_loop
async def test_a_text_that_a_model_cannot_embed_is_pending_for_another_alone(place: Place) -> None:
    async with place.open() as store:
        vectors = vectors_of(store)
        ids = await add_entries(store, "ada", ["a"])
        (pending,) = await vectors.pending(MODEL, 10)
        assert await vectors.store(MODEL, [NewVector(pending, None)]) == 1
        assert await vectors.count_pending(MODEL) == 0
        assert await vectors.count_pending("another/8") == 1
        memory = await memory_of(store, "ada")
        assert await vectors.read("entry", memory, model=MODEL, ids=ids.values()) == {}
        assert await vectors.nearest("entry", direction_of("a"), MODEL, tenant="default") == []


@in_event_loop
async def test_any_text_is_given_as_it_was_said(place: Place) -> None:
    hostile = ["nul \0 and \ud800 half", "\x01 marked", "'; DROP TABLE memories; --", "%s ?1 $1", "雪" * 500]
    async with place.open() as store:
        vectors = vectors_of(store)
        await add_turns(store, "ada", hostile)
        assert texts(await vectors.pending(MODEL, 10)) == sorted(hostile)
        assert await embed_all(vectors) == len(hostile)


@in_event_loop
async def test_storing_many_vectors_does_not_lock_all_their_memories_together(empty_postgres: str) -> None:
    """Whoever records a conversation of one of them would wait for all of them."""
    async with Place(empty_postgres).open() as store:
        vectors = vectors_of(store)
        for number in range(20):
            await add_entries(store, f"user {number}", ["The user sails."])
        with psycopg.connect(empty_postgres) as other:
            other.execute("SELECT 1 FROM memories ORDER BY memory_id DESC LIMIT 1 FOR UPDATE")
            storing = asyncio.create_task(embed_all(vectors))
            await until_somebody_waits(empty_postgres)
            assert 0 < await vectors.count_pending(MODEL) < 20, "those before are stored"
            stored = other.execute("SELECT memory_id FROM memories ORDER BY memory_id LIMIT 1").fetchall()
            with psycopg.connect(empty_postgres) as third:
                third.execute("SELECT 1 FROM memories WHERE memory_id = %s FOR UPDATE NOWAIT", stored[0])
        assert await storing == 20


@pytest.mark.parametrize(
    "pair", [('a", "b', "c"), ("a", 'b", "c'), ("[", "]"), ("雪", "\\"), ("", "ab"), ("a", "b")], ids=str
)
def test_the_id_of_a_turn_stands_for_one_pair(pair: tuple[str, str]) -> None:
    assert turn_of(turn_id(*pair)) == pair


@pytest.mark.parametrize("other", ["plain", "[]", '["a"]', '["a", 1]', '{"a": "b"}', '["a", "b", "c"]'])
def test_other_texts_are_no_ids_of_turns(other: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - JSON has its own words
        turn_of(other)


def test_what_is_pending_does_not_show_its_text() -> None:
    pending = Pending("entry", ("id",), "memory", "a secret")
    assert "secret" not in repr(pending)
    assert "secret" not in repr(NewVector(pending, None))
