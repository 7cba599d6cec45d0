"""Adding an entry unless it is known, also by several callers at once."""

import asyncio

import pytest

from recollect.testing.contract import in_event_loop

from ..databases import Place

LISBON = "The user lives in Lisbon."


@in_event_loop
async def test_what_is_known_is_not_written_again(place: Place) -> None:
    async with place.open() as store:
        first, is_new = await store.add_entry_unless_known("desk", "ada", "profile", LISBON, confidence=0.5)
        assert is_new
        again = await store.add_entry_unless_known("desk", "ada", "profile", "the user lives in  lisbon")
        assert again == (first, False)
        for owner, kind, text in [
            (("desk", "bob"), "profile", LISBON),
            (("desk", "ada"), "event", LISBON),
            (("desk", "ada"), "profile", "The user does not live in Lisbon."),
        ]:
            _, is_new = await store.add_entry_unless_known(*owner, kind, text)
            assert is_new, (owner, kind, text)


@in_event_loop
async def test_words_that_tell_nothing_by_themselves_are_known_again(file_place: Place) -> None:
    async with file_place.open() as store:
        for is_expected in (True, False):
            _, is_new = await store.add_entry_unless_known("desk", "ada", "mind", "It is what it is.")
            assert is_new is is_expected


@in_event_loop
async def test_what_is_told_no_more_can_be_written_again(file_place: Place) -> None:
    async with file_place.open() as store:
        entry, _ = await store.add_entry_unless_known("desk", "ada", "profile", LISBON)
        await store.edit_entry(entry.content_id, "The user lives in Porto.")
        _, is_new = await store.add_entry_unless_known("desk", "ada", "profile", LISBON)
        assert is_new


@in_event_loop
async def test_of_many_who_write_the_same_at_once_one_does(lasting_place: Place) -> None:
    async with lasting_place.open() as store, lasting_place.open() as other:
        told = await asyncio.gather(
            *(
                writer.add_entry_unless_known("desk", "ada", "profile", LISBON)
                for writer in [store, other] * 4
            )
        )
        (entry,) = await store.list_entries("desk", "ada")
    assert sorted(is_new for _, is_new in told) == [False] * 7 + [True]
    assert {each.content_id for each, _ in told} == {entry.content_id}


@in_event_loop
async def test_what_cannot_be_written_is_refused(file_place: Place) -> None:
    async with file_place.open() as store:
        with pytest.raises(ValueError, match="text must not be empty"):
            await store.add_entry_unless_known("desk", "ada", "profile", " ")
        with pytest.raises(ValueError, match="valid_from"):
            await store.add_entry_unless_known("desk", "ada", "event", LISBON, valid_from="soon")
