"""An entry that a later message puts in doubt: shown as such, and certain again without that message."""

from recollect.memory.lifetime import state_of
from recollect.memory.offline import OfflineExtractor
from recollect.memory.store import MemoryStore
from recollect.memory.times import now
from recollect.testing.contract import in_event_loop

from ..databases import Place
from .kit import LONGEST

HOME = "The user lives in Leeds."


async def say(store: MemoryStore, text: str, day: str) -> str:
    said = [{"role": "user", "content": text}]
    conversation = await store.record_conversation("agent", "user", said, created_at=f"{day}T10:00:00Z")
    await store.drain(LONGEST)
    return conversation.conversation_id


@in_event_loop
async def test_a_change_that_is_not_understood_makes_an_entry_doubtful(place: Place) -> None:
    async with place.open(workers=1, extractor=OfflineExtractor()) as store:
        first = await say(store, "I live in Leeds.", "2026-10-01")
        second = await say(store, "We moved again, finally more space.", "2026-11-01")
        (entry,) = await store.list_entries("agent", "user")
        assert (entry.text, state_of(entry, now())) == (HOME, "doubtful")
        assert {each.conversation_id for each in entry.evidence} == {first, second}
        why = await store.why(entry.content_id)
        assert why is not None
        assert entry.data["doubt"] == "a later message tells of a change"
        assert {each.conversation_id for each in why.entry.evidence} == {first, second}


@in_event_loop
async def test_without_the_message_the_entry_is_certain_again(place: Place) -> None:
    async with place.open(workers=1, extractor=OfflineExtractor()) as store:
        await say(store, "I live in Leeds.", "2026-10-01")
        second = await say(store, "We moved again, finally more space.", "2026-11-01")
        await store.erase_conversation(second)
        (entry,) = await store.list_entries("agent", "user")
        assert (entry.text, state_of(entry, now())) == (HOME, "current")


@in_event_loop
async def test_without_the_first_message_nothing_is_left(place: Place) -> None:
    async with place.open(workers=1, extractor=OfflineExtractor()) as store:
        first = await say(store, "I live in Leeds.", "2026-10-01")
        await say(store, "We moved again, finally more space.", "2026-11-01")
        await store.erase_conversation(first)
        assert await store.list_entries("agent", "user", include_retired=True) == []


@in_event_loop
async def test_a_new_value_settles_the_doubt(place: Place) -> None:
    async with place.open(workers=1, extractor=OfflineExtractor()) as store:
        await say(store, "I live in Leeds.", "2026-10-01")
        await say(store, "We moved again, finally more space.", "2026-10-20")
        await say(store, "I live in York.", "2026-11-01")
        entries = await store.list_entries("agent", "user")
        assert [entry.text for entry in entries] == ["The user lives in York."]
        assert state_of(entries[0], now()) == "current"


@in_event_loop
async def test_a_change_within_one_run_keeps_both_values_in_the_history(place: Place) -> None:
    async with place.open(workers=1, extractor=OfflineExtractor()) as store:
        said = [{"role": "user", "content": each} for each in ("I live in Leeds.", "I moved to York.")]
        await store.record_conversation("agent", "user", said, created_at="2026-10-01T10:00:00Z")
        await store.drain(LONGEST)
        (entry,) = await store.list_entries("agent", "user")
        assert entry.text == "The user lives in York."
        assert [each.text for each in await store.get_history(entry.content_id)] == [HOME, entry.text]
