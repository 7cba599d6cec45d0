"""People confirm and reject entries. What is rejected is not learned again from the same words."""

import pytest

from recollect.errors import ConflictError
from recollect.memory.entry import Entry
from recollect.memory.store import MemoryStore
from recollect.testing.contract import in_event_loop

from ..databases import Place


async def learn(store: MemoryStore, text: str) -> list[Entry]:
    await store.record_conversation("agent", "ada", [{"role": "user", "content": text}])
    await store.drain(60)
    return await store.list_entries("agent", "ada")


@in_event_loop
async def test_a_rejected_entry_is_gone_and_not_learned_again(place: Place) -> None:
    async with place.open(workers=1) as store:
        (entry,) = await learn(store, "I am allergic to peanuts.")
        rejected = await store.reject_entry(entry.content_id)
        assert rejected.rejected_at == rejected.retired_at is not None
        assert rejected.to_dict()["state"] == "rejected"
        assert (await store.search_memories("peanuts", "agent", "ada")).hits == ()
        known = await learn(store, "I am allergic to peanuts. I have a cat named Pixel.")
        assert [each for each in known if "peanuts" in each.text] == []
        assert any("Pixel" in each.text for each in known)
        newest = (await store.list_newest_runs())[0]
        assert newest.dropped == {"rejected before": 1}
        why = await store.why(entry.content_id)
    assert why is not None
    assert "peanuts" in why.evidence[0].content


@in_event_loop
async def test_rejecting_restores_what_the_entry_had_replaced(place: Place) -> None:
    async with place.open(workers=1) as store:
        (home,) = await learn(store, "I live in Lisbon.")
        (moved,) = await learn(store, "I live in Porto now.")
        assert moved.supersedes == (home.content_id,)
        await store.reject_entry(moved.content_id)
        (restored,) = await store.list_entries("agent", "ada")
        assert restored.content_id == home.content_id
        assert restored.superseded_by is None
        (hit,) = (await store.search_memories("Lisbon", "agent", "ada")).hits
        assert hit.entry.content_id == home.content_id


@in_event_loop
async def test_rejecting_an_edit_does_not_bring_back_the_edited_text(place: Place) -> None:
    async with place.open(workers=0) as store:
        wrong = await store.add_entry("agent", "ada", "profile", "Likes tea.")
        edit = await store.edit_entry(wrong.content_id, "Likes green tea.")
        await store.reject_entry(edit.content_id)
        assert await store.list_entries("agent", "ada") == []


@in_event_loop
async def test_only_a_current_entry_can_be_rejected(place: Place) -> None:
    async with place.open(workers=0) as store:
        old = await store.add_entry("agent", "ada", "profile", "Likes tea.")
        new = await store.edit_entry(old.content_id, "Likes coffee.")
        for content_id in (old.content_id, "no-such-entry"):
            with pytest.raises(ConflictError):
                await store.reject_entry(content_id)
        with pytest.raises(ConflictError):
            await store.confirm_entry(old.content_id)
        await store.reject_entry(new.content_id)
        with pytest.raises(ConflictError):
            await store.reject_entry(new.content_id)


@in_event_loop
async def test_confirming_a_rejected_entry_makes_it_current_again(place: Place) -> None:
    async with place.open(workers=1) as store:
        (entry,) = await learn(store, "I am allergic to peanuts.")
        await store.reject_entry(entry.content_id)
        confirmed = await store.confirm_entry(entry.content_id)
        assert (confirmed.rejected_at, confirmed.retired_at, confirmed.confidence) == (None, None, 1)
        assert len((await store.search_memories("peanuts", "agent", "ada")).hits) == 1
        # It is found by its terms again, so saying it again is no second entry.
        assert len(await learn(store, "I am allergic to peanuts.")) == 1


@in_event_loop
async def test_a_rejection_is_exported_imported_and_erased_with_its_owner(place: Place) -> None:
    async with place.open(workers=1) as store:
        (entry,) = await learn(store, "I am allergic to peanuts.")
        await store.reject_entry(entry.content_id)
        exported = await store.export_user("ada")
        assert exported["entries"][0]["rejected_at"] is not None
        await store.erase_user("ada")
        assert await store.get_entry(entry.content_id) is None
        await store.import_user(exported)
        assert await learn(store, "I am allergic to peanuts.") == []
        await store.erase_conversation(exported["conversations"][0]["conversation_id"])
        assert await store.get_entry(entry.content_id) is None


@in_event_loop
async def test_another_tenant_cannot_review(file_place: Place) -> None:
    async with file_place.open(workers=0) as store:
        entry = await store.add_entry("agent", "ada", "profile", "Likes tea.")
    async with file_place.open(workers=0, tenant="other") as store:
        for act in (store.confirm_entry, store.reject_entry):
            with pytest.raises(ConflictError):
                await act(entry.content_id)
