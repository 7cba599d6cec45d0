"""Tags of conversations and entries: stored, limited, and returned everywhere."""

from typing import Any

import pytest

from recollect import ConflictError, Conversation
from recollect.memory.tags import LONGEST_TAG, MOST_TAGS, read_tags
from recollect.testing.contract import in_event_loop

from ..databases import Place

SAID = [{"role": "user", "content": "I sail.", "message_id": "m"}]
GIVEN = ["work", "客户", "work", "q3 2026"]
STORED = ("work", "客户", "q3 2026")


@in_event_loop
async def test_the_tags_of_a_conversation_come_back_everywhere(place: Place) -> None:
    async with place.open() as store:
        made = await store.record_conversation("agent", "user", SAID, conversation_id="c", tags=GIVEN)
        opened = await store.open_conversation("agent", "user", conversation_id="o", tags=["new"])
        plain = await store.record_conversation("agent", "user", SAID, conversation_id="p")
        stored = await store.get_conversation("c")
        assert stored is not None
        assert (made.tags, stored.tags, opened.tags, plain.tags) == (STORED, STORED, ("new",), ())
        listed = {each["conversation_id"]: each["tags"] for each in await store.list_conversations()}
        assert listed == {"c": list(STORED), "o": ["new"], "p": []}
        assert Conversation.from_dict(stored.to_dict()).tags == STORED


@in_event_loop
async def test_a_conversation_with_other_tags_is_another_one(place: Place) -> None:
    async with place.open() as store:
        await store.record_conversation("agent", "user", SAID, conversation_id="c", tags=["a", "b"])
        same = await store.record_conversation("agent", "user", SAID, conversation_id="c", tags=["b", "a"])
        assert same.tags == ("a", "b")
        with pytest.raises(ConflictError):
            await store.record_conversation("agent", "user", SAID, conversation_id="c", tags=["a"])


@in_event_loop
async def test_the_tags_of_an_entry_come_back_and_survive_an_edit(place: Place) -> None:
    async with place.open() as store:
        entry = await store.add_entry("agent", "user", "profile", "The user sails.", tags=GIVEN)
        edited = await store.edit_entry(entry.content_id, "The user sails often.")
        changed = await store.edit_entry(edited.content_id, "The user rows.", tags=["row"])
        bare = await store.edit_entry(changed.content_id, "The user swims.", tags=[])
        assert [each.tags for each in (entry, edited, changed, bare)] == [STORED, STORED, ("row",), ()]
        assert [each.tags for each in await store.get_history(bare.content_id)] == [
            STORED,
            STORED,
            ("row",),
            (),
        ]
        new, _ = await store.add_entry_unless_known("agent", "user", "event", "The user won.", tags=["race"])
        assert new.to_dict()["tags"] == ["race"]


@in_event_loop
async def test_an_entry_with_other_tags_is_another_one(file_place: Place) -> None:
    async with file_place.open() as store:
        what: Any = ("agent", "user", "profile", "The user sails.")
        entry = await store.add_entry(*what, content_id="e", tags=["a", "b"])
        assert await store.add_entry(*what, content_id="e", tags=["b", "a"]) == entry
        with pytest.raises(ConflictError):
            await store.add_entry(*what, content_id="e", tags=["a"])


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        ("work", TypeError, "tags must be a list of texts, not str"),
        ({"a": 1}, TypeError, "tags must be a list of texts, not dict"),
        (7, TypeError, "tags must be a list of texts, not int"),
        ([7], TypeError, "tags must be texts, not int"),
        ([""], ValueError, "each of tags must have 1 to 64 characters"),
        (["x" * (LONGEST_TAG + 1)], ValueError, "each of tags must have 1 to 64 characters"),
        ([" a"], ValueError, "each of tags must be printable text without spaces around it"),
        (["a\nb"], ValueError, "each of tags must be printable text"),
        (["\ud800"], ValueError, "each of tags must be printable text"),
        ([str(number) for number in range(MOST_TAGS + 1)], ValueError, "tags must be at most 32"),
    ],
)
def test_tags_that_are_none_are_refused(given: Any, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=f"^{told}"):
        Conversation("agent", "user", tags=given)


def test_the_bounds_themselves_are_allowed() -> None:
    most = tuple(f"{number:0{LONGEST_TAG}}" for number in range(MOST_TAGS))
    assert read_tags("tags", list(most)) == most
    assert read_tags("tags", None) == read_tags("tags", []) == ()
