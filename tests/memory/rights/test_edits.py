"""An edit is its own evidence: who made it and when. The old words stay with the old version."""

import json

import pytest

from .kit import AGENT, Somewhere, known, tell

pytestmark = pytest.mark.anyio


async def test_why_of_an_edited_entry_is_the_edit_and_the_old_evidence_stays_with_the_old_version(
    somewhere: Somewhere,
) -> None:
    async with somewhere.open() as store:
        await tell(store, "c1", "home: lives in Ghent")
        (old,) = await store.list_entries(AGENT, "ann")
        new = await store.edit_entry(old.content_id, "lives in Lima", edited_by="the help desk")
        assert new.evidence == ()
        why = await store.why(new.content_id)
        assert why is not None
        assert (why.evidence, why.origin) == ((), None)
        assert why.edit is not None
        assert (why.edit.edited_by, why.edit.edited_at) == ("the help desk", new.learned_at)
        assert why.edit.content_id == old.content_id
        before = await store.why(old.content_id)
        assert before is not None
        assert [quote.content for quote in before.evidence] == ["home: lives in Ghent"]
        assert before.edit is None


async def test_an_edit_that_is_said_later_has_the_message_as_evidence_too(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        await tell(store, "c1", "home: lives in Ghent")
        (old,) = await store.list_entries(AGENT, "ann")
        new = await store.edit_entry(old.content_id, "lives in Lima")
        await tell(store, "c2", "home: lives in Lima")
        why = await store.why(new.content_id)
        assert why is not None
        assert [quote.content for quote in why.evidence] == ["home: lives in Lima"]
        assert why.edit is not None
        assert why.edit.edited_by == "library"


async def test_an_edit_goes_when_the_messages_of_what_it_edits_are_erased(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        await tell(store, "c1", "home: lives in Ghent")
        (old,) = await store.list_entries(AGENT, "ann")
        await store.edit_entry(old.content_id, "lives in the town of Ghent")
        await store.erase_conversation("c1")
        assert await known(store) == []


async def test_an_entry_that_a_person_wrote_is_edited_like_any_other(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        written = await store.add_entry(AGENT, "ann", "profile", "lives in Ghent")
        edited = await store.edit_entry(written.content_id, "lives in Lima", edited_by="ann")
        why = await store.why(edited.content_id)
        assert why is not None
        assert why.edit is not None
        assert (why.edit.edited_by, why.edit.content_id) == ("ann", written.content_id)
        told = await store.why(written.content_id)
        assert told is not None
        assert told.edit is None


async def test_an_edit_comes_through_export_and_import(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        await tell(store, "c1", "home: lives in Ghent")
        (old,) = await store.list_entries(AGENT, "ann")
        new = await store.edit_entry(old.content_id, "lives in Lima", edited_by="ann")
        before = await store.why(new.content_id)
        exported = json.loads(json.dumps(await store.export_user("ann")))
        await store.erase_user("ann")
        await store.import_user(exported)
        after = await store.why(new.content_id)
        assert after is not None
        assert before is not None
        assert (after.edit, after.evidence) == (before.edit, ())
