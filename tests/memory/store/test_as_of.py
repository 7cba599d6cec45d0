"""`as_of` reads what was known at a time. What was said is known from then on, whenever it is learned."""

from typing import Any

from recollect.memory.offline import OfflineExtractor
from recollect.memory.store import MemoryStore
from recollect.memory.times import now
from recollect.testing.contract import in_event_loop

from ..databases import Place

AGENT, USER = "agent", "ada"
PORTO, LISBON = "I live in Porto.", "I moved to Lisbon."
PEANUTS = "I am allergic to peanuts."


async def learn(store: MemoryStore, said: dict[str, str]) -> None:
    """Record messages by their dates, each in its own conversation, and learn from them in this order."""
    for date, text in said.items():
        message = {"role": "user", "content": text, "created_at": f"{date}T12:00:00Z"}
        await store.record_conversation(AGENT, USER, [message])
        await store.drain(60)


async def known(store: MemoryStore, as_of: str) -> list[str]:
    return [entry.text for entry in await store.list_entries(AGENT, USER, as_of=as_of)]


def learning(place: Place, **options: Any) -> MemoryStore:
    return place.open(workers=1, extractor=OfflineExtractor(), **options)


@in_event_loop
async def test_an_entry_of_old_messages_is_known_from_the_time_they_were_said(place: Place) -> None:
    async with learning(place) as store:
        await learn(store, {"2026-05-03": PEANUTS})
        (entry,) = await store.list_entries(AGENT, USER)
        assert await known(store, "2026-05-03") == []
        assert await known(store, "2026-05-04") == await known(store, "2026-07-01") == [entry.text]
        memory = await store.get_memory(AGENT, USER, as_of="2026-07-01")
        assert memory is not None
        assert memory.profile_content == [entry.text]
        searched = await store.search_memories("peanuts", AGENT, USER, as_of="2026-07-01")
        assert [hit.entry.text for hit in searched.hits] == [entry.text]
        assert entry.learned_at == entry.said_at


@in_event_loop
async def test_the_time_of_the_import_is_beside_the_time_at_which_it_was_said(place: Place) -> None:
    async with learning(place) as store:
        started = now()
        await learn(store, {"2026-05-03": PEANUTS})
        (entry,) = await store.list_entries(AGENT, USER)
        why = await store.why(entry.content_id)
        assert why is not None
        assert why.origin is not None
        assert why.origin.finished_at is not None
        assert entry.learned_at.date().isoformat() == "2026-05-03"
        assert why.origin.finished_at >= started


@in_event_loop
async def test_a_superseded_entry_is_known_until_its_successor_was_said(place: Place) -> None:
    async with learning(place) as store:
        await learn(store, {"2026-05-03": PORTO, "2026-06-10": LISBON})
        for day, city in (("2026-06-01", "Porto"), ("2026-07-01", "Lisbon")):
            (text,) = await known(store, day)
            assert city in text


@in_event_loop
async def test_the_past_is_the_same_if_the_newer_message_is_learned_first(place: Place) -> None:
    async with learning(place) as store:
        await learn(store, {"2026-06-10": LISBON, "2026-05-03": PORTO})
        for day, city in (("2026-06-01", "Porto"), ("2026-07-01", "Lisbon")):
            (text,) = await known(store, day)
            assert city in text
        assert ["Lisbon" in entry.text for entry in await store.list_entries(AGENT, USER)] == [True]


@in_event_loop
async def test_an_older_message_that_says_the_same_moves_the_time_back(place: Place) -> None:
    async with learning(place) as store:
        await learn(store, {"2026-06-10": PEANUTS, "2026-05-03": PEANUTS})
        (entry,) = await store.list_entries(AGENT, USER)
        assert await known(store, "2026-05-10") == [entry.text]
        assert (entry.learned_at.month, entry.said_at and entry.said_at.month) == (5, 6)


@in_event_loop
async def test_a_later_repetition_does_not_change_since_when_it_is_known(place: Place) -> None:
    async with learning(place) as store:
        await learn(store, {"2026-05-03": PORTO, "2026-09-01": PORTO, "2026-07-05": "I live in Braga."})
        assert ["Porto" in text for text in await known(store, "2026-06-01")] == [True]
        current = await store.list_entries(AGENT, USER)
        assert ["Porto" in entry.text for entry in current] == [True], "Porto was said last"


@in_event_loop
async def test_an_edit_is_known_from_the_time_of_the_edit(place: Place) -> None:
    async with learning(place) as store:
        await learn(store, {"2026-05-03": PORTO})
        (old,) = await store.list_entries(AGENT, USER)
        edited = await store.edit_entry(old.content_id, "The user lives in Braga.")
        assert await known(store, "2026-07-01") == [old.text]
        assert await known(store, edited.learned_at.isoformat()) == [edited.text]


@in_event_loop
async def test_a_fact_that_remains_is_not_known_twice(place: Place) -> None:
    async with learning(place) as store:
        first = "I live in Porto and have a dog named Bit."
        await learn(store, {"2026-05-03": first, "2026-06-10": LISBON})
        for day in ("2026-06-01", "2026-07-01"):
            assert sum("Bit" in text for text in await known(store, day)) == 1
