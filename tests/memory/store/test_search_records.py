"""Search records follow their messages: made once, read in part, and gone with what they were made of."""

import asyncio
from typing import Any

import pytest

from recollect import MemoryStore
from recollect.memory.database.schema import MESSAGE_RECORDS
from recollect.memory.pipeline.record_filler import RecordFiller
from recollect.memory.store import turn_corpus
from recollect.testing.contract import in_event_loop

from ..databases import Place
from .test_searching import AGENT, EMBEDDER, TURNS, USER, found, tell

LONG = "We looked at the weather for a while and said nothing of importance. " * 12
ANSWER = f"{LONG}\n\n```python\nprint('marmalade')\n```\n\n{LONG} The landlord is called Quentin."


async def rows(store: MemoryStore, columns: str = "conversation_id, message_id") -> list[Any]:
    sql = f"SELECT {columns} FROM {MESSAGE_RECORDS.name} ORDER BY conversation_id, message_id"
    return await store._database.fetch(sql, (), list)


async def made(store: MemoryStore) -> list[bool]:
    return [head is not None for (head,) in await rows(store, "head")]


def filler(store: MemoryStore) -> RecordFiller:
    return RecordFiller(store._database, "default")


@in_event_loop
async def test_each_message_that_is_searched_has_a_row(place: Place) -> None:
    async with place.open(embedder=None) as store:
        said = [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hello.", "message_id": "m"},
        ]
        await store.record_conversation(AGENT, USER, said, conversation_id="c")
        assert [tuple(row) for row in await rows(store)] == [("c", "m")]
        assert await made(store) == [False]


@in_event_loop
async def test_a_message_whose_record_is_made_during_the_search_is_found(file_place: Place) -> None:
    async with file_place.open(embedder=None) as store:
        await tell(store, *TURNS)
        corpora = store._shared.corpora
        read_stamps = corpora._read_stamps

        async def read_and_be_overtaken(*which: Any) -> Any:
            stamps = await read_stamps(*which)
            await filler(store).step()
            return stamps

        corpora._read_stamps = read_and_be_overtaken  # type: ignore[method-assign]
        assert (await store.search_conversations("kitten salmon", AGENT, USER)).hits


@in_event_loop
async def test_messages_are_found_before_and_after_their_records_are_made(place: Place) -> None:
    async with place.open(embedder=None) as store:
        await tell(store, *TURNS)
        before = await store.search_conversations("kitten salmon", AGENT, USER)
        assert await filler(store).step() == len(TURNS)
        assert await filler(store).step() == 0
        assert all(await made(store))
        after = await store.search_conversations("kitten salmon", AGENT, USER)
        assert before == after
    async with place.open(embedder=None) as store:
        if await rows(store):  # not in memory
            assert await store.search_conversations("kitten salmon", AGENT, USER) == before


@in_event_loop
async def test_vectors_of_passages_come_with_the_record(shared_place: Place) -> None:
    async with shared_place.open(embedder=EMBEDDER) as store:
        await tell(store, ANSWER, "Thank you.")
        await store.embed_pending()
        assert all(await made(store))
        (model,) = {model for (model,) in await rows(store, "vector_model")}
        assert model.startswith("bag/64")
        sizes = [len(vectors) for (vectors,) in await rows(store, "vectors")]
        assert sizes[0] > sizes[1] == 64
    async with shared_place.open(embedder=EMBEDDER) as store:
        result = await store.search_conversations("What is the landlord called?", AGENT, USER)
        assert result.warnings == ()
        assert result.hits[0].message.content == ANSWER
        assert result.hits[0].parts["vector"] > 0


@in_event_loop
async def test_a_refresh_reads_only_what_is_new(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    decode = turn_corpus._records_from

    def counted(given: list[Any]) -> Any:
        read.append(len(given))
        return decode(given)

    monkeypatch.setattr(turn_corpus, "_records_from", counted)
    async with place.open(embedder=None) as store:
        await tell(store, *TURNS)
        await filler(store).step()
        assert await found(store, "kitten") == [TURNS[0]]
        await tell(store, "The parrot speaks French.", conversation="c2")
        assert await found(store, "parrot") == ["The parrot speaks French."]
        assert read == [len(TURNS), 1]


@in_event_loop
async def test_pages_are_read_one_after_the_other(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_corpus, "_PAGE", 3)
    async with place.open(embedder=None) as store:
        for number in range(5):
            await tell(store, f"The number {number} is called alpha{number}.", conversation=f"c{number}")
        await tell(store, *TURNS, conversation="many")  # more than a page with one stamp
        await tell(store, "The last one is omega.", conversation="z")
        for number in range(5):
            assert await found(store, f"alpha{number}") == [f"The number {number} is called alpha{number}."]
        assert await found(store, "violins") == [TURNS[3]]
        assert await found(store, "omega") == ["The last one is omega."]


@in_event_loop
async def test_what_is_erased_is_not_found_and_has_no_record(place: Place) -> None:
    async with place.open(embedder=None) as store:
        await tell(store, *TURNS)
        await tell(store, "The parrot speaks French.", conversation="c2")
        await filler(store).step()
        assert await found(store, "kitten") == [TURNS[0]]
        await store.erase_message("c1", "m0")
        assert await found(store, "kitten") == []
        assert ("c1", "m0") not in [tuple(row) for row in await rows(store)]
        await store.erase_conversation("c2")
        assert await found(store, "parrot") == []
        assert {row[0] for row in await rows(store)} == {"c1"}
        await store.erase_user(USER)
        assert await rows(store) == []


@in_event_loop
async def test_erasing_in_one_store_is_seen_in_another(shared_place: Place) -> None:
    async with shared_place.open(embedder=None) as one, shared_place.open(embedder=None) as other:
        await tell(one, *TURNS)
        assert await found(other, "kitten") == [TURNS[0]]
        await one.erase_message("c1", "m0")
        await tell(one, "The parrot speaks French.", conversation="c2")
        assert await found(other, "kitten") == []
        assert await found(other, "parrot") == ["The parrot speaks French."]


@in_event_loop
async def test_a_user_who_was_erased_and_came_back_has_only_the_new_messages(shared_place: Place) -> None:
    async with shared_place.open(embedder=None) as one, shared_place.open(embedder=None) as other:
        await tell(one, *TURNS)
        exported = await one.export_user(USER)
        assert await found(other, "kitten") == [TURNS[0]]
        await one.erase_user(USER)
        data = exported["conversations"][0]["conversation_data"]
        data["messages"] = data["messages"][3:4]
        await one.import_user(exported)
        assert await found(other, "kitten") == []
        assert await found(other, "violins") == [TURNS[3]]


@in_event_loop
async def test_too_many_messages_without_a_record_are_said(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_corpus, "_MOST_ANALYSED", 4)
    async with place.open(embedder=None) as store:
        await tell(store, *TURNS)
        result = await store.search_conversations("kitten violins", AGENT, USER)
        assert result.warnings == ("2 messages are not found yet: their search records are still to be made",)
        await filler(store).step()
        result = await store.search_conversations("kitten", AGENT, USER)
        assert result.warnings == ()
        assert await found(store, "kitten") == [TURNS[0]]


@in_event_loop
async def test_workers_make_records_without_an_embedder(shared_place: Place) -> None:
    async with shared_place.open(embedder=None, workers=1) as store:
        await tell(store, *TURNS)
        await store.drain()
        async with asyncio.timeout(60):
            while not all(await made(store)):  # noqa: ASYNC110 - the workers have a loop of their own
                await asyncio.sleep(0.01)


@in_event_loop
async def test_quoted_phrases_are_read_from_the_messages(place: Place) -> None:
    async with place.open(embedder=None) as store:
        await tell(store, "The green tea is cold.", "Tea that is green, cold and sweet.")
        result = await store.search_conversations('Who said "green tea is cold"?', AGENT, USER)
        assert [hit.parts.get("phrase", 0) > 0 for hit in result.hits] == [True, False]
