"""Metadata of conversations and entries: stored exactly, limited in size, with clear error messages."""

from typing import Any

import pytest

from recollect import ConflictError, Conversation
from recollect.memory.metadata import MOST_BYTES, has_metadata, is_same_json, read_metadata
from recollect.testing.contract import in_event_loop

from ..databases import Place

SAID = [{"role": "user", "content": "I sail.", "message_id": "m"}]
GIVEN = {"ticket": 17, "tags": ["vip", "小"], "nested": {"a": [None, True, 0.5]}}


@in_event_loop
async def test_the_metadata_of_a_conversation_comes_back_everywhere(place: Place) -> None:
    async with place.open() as store:
        await store.record_conversation("agent", "user", SAID, conversation_id="c", metadata=GIVEN)
        opened = await store.open_conversation("agent", "user", conversation_id="o", metadata={"a": 1})
        plain = await store.record_conversation("agent", "user", SAID, conversation_id="p")
        stored = await store.get_conversation("c")
        assert stored is not None
        assert (stored.metadata, opened.metadata, plain.metadata) == (GIVEN, {"a": 1}, {})
        listed = {each["conversation_id"]: each["metadata"] for each in await store.list_conversations()}
        assert listed == {"c": GIVEN, "o": {"a": 1}, "p": {}}
        same = await store.record_conversation("agent", "user", SAID, conversation_id="c", metadata=GIVEN)
        assert same.metadata == GIVEN
        with pytest.raises(ConflictError):
            await store.record_conversation("agent", "user", SAID, conversation_id="c", metadata={})


@in_event_loop
async def test_the_metadata_of_an_entry_comes_back_and_survives_an_edit(place: Place) -> None:
    async with place.open() as store:
        entry = await store.add_entry("agent", "user", "profile", "The user sails.", metadata=GIVEN)
        assert entry.metadata == GIVEN
        edited = await store.edit_entry(entry.content_id, "The user sails often.")
        assert edited.metadata == GIVEN
        changed = await store.edit_entry(edited.content_id, "The user rows.", metadata={})
        assert changed.metadata == {}
        assert [each.metadata for each in await store.get_history(changed.content_id)] == [GIVEN, GIVEN, {}]
        new, is_new = await store.add_entry_unless_known(
            "agent", "user", "event", "The user won a race.", metadata={"by": "crew"}
        )
        assert (new.metadata, is_new) == ({"by": "crew"}, True)
        (hit,) = (await store.search_memories("race", "agent", "user")).hits
        assert hit.to_dict()["entry"]["metadata"] == {"by": "crew"}


def nested(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        ([], TypeError, "metadata must be an object, not list"),
        ("{}", TypeError, "metadata must be an object, not str"),
        ({7: 1}, TypeError, "keys in metadata must be strings, not int"),
        ({"": 1}, ValueError, "keys in metadata must have 1 to 255 characters"),
        ({"a": {1, 2}}, TypeError, "metadata must hold JSON values, not set"),
        ({"a": float("nan")}, ValueError, "numbers in metadata must be finite"),
        ({"a": [2**63]}, ValueError, "integers in metadata must fit in 64 bits"),
        ({"a": "\0"}, ValueError, "strings in metadata must hold neither NUL"),
        ({"\ud800": 1}, ValueError, "strings in metadata must hold neither NUL"),
        (nested(6), ValueError, "metadata must not be nested deeper than 5 levels"),
        ({"a": "x" * MOST_BYTES}, ValueError, "metadata must be at most 16,384 bytes as JSON"),
    ],
)
def test_metadata_that_is_none_is_refused(given: Any, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=f"^{told}"):
        Conversation("agent", "user", metadata=given)


def test_the_bounds_themselves_are_allowed() -> None:
    assert read_metadata("it", nested(5)) == nested(5)
    largest = {"a": "x" * (MOST_BYTES - len('{"a":""}'))}
    assert read_metadata("it", largest) == largest


def test_a_copy_is_kept_that_the_caller_cannot_change() -> None:
    given = {"tags": ["a"]}
    made = Conversation("agent", "user", metadata=given)
    given["tags"].append("b")
    assert made.metadata == {"tags": ["a"]}


def test_metadata_matches_if_all_keys_have_equal_values() -> None:
    assert has_metadata({"n": 1, "t": "a"}, {"n": 1.0, "t": "a", "other": None})
    assert not has_metadata({"n": 1, "t": "a"}, {"n": 1, "t": "b"})
    assert not has_metadata({"n": 1}, {})
    assert has_metadata({}, {})


def test_an_absent_key_is_not_null() -> None:
    assert has_metadata({"n": None}, {"n": None})
    assert not has_metadata({"n": None}, {})


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (0, False, False),
        (True, True, True),
        ("1", 1, False),
        ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}, True),
        ({"a": [True]}, {"a": [1]}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1, 2], [2, 1], False),
        (None, 0, False),
    ],
)
def test_values_are_compared_as_json(one: Any, other: Any, same: bool) -> None:
    assert is_same_json(one, other) is is_same_json(other, one) is same
