"""Searches by tags, metadata, role and name: exact, per user and tenant, with a warning for unknown keys."""

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from recollect import MemoryStore, OfflineExtractor
from recollect.testing.contract import in_event_loop

from ..databases import Place

AGENT, USER = "agent", "ada"
WORK = [
    {
        "role": "user",
        "name": "Ada",
        "content": "The boat needs a sail before the race.",
        "message_id": "1",
    },
    {"role": "assistant", "content": "Which sail does the boat need?", "message_id": "2"},
    {"role": "user", "name": "Bo", "content": "I ordered the sail for the boat.", "message_id": "3"},
    {"role": "tool", "name": "shop", "content": "Order of a sail for a boat: shipped.", "message_id": "4"},
]
HOME = [{"role": "user", "name": "Ada", "content": "The toy boat has no sail.", "message_id": "5"}]
BARE = [{"role": "user", "content": "A boat without labels and without a sail.", "message_id": "6"}]


async def record_all(store: MemoryStore, user: str = USER) -> None:
    recorded: tuple[tuple[str, list[dict[str, str]], dict[str, Any]], ...] = (
        ("work", WORK, {"tags": ["work", "boat"], "metadata": {"ticket": 17, "open": True}}),
        ("home", HOME, {"tags": ["home", "boat"], "metadata": {"ticket": 18, "place": {"room": 1}}}),
        ("bare", BARE, {}),
    )
    for name, said, labels in recorded:
        await store.record_conversation(AGENT, user, said, conversation_id=f"{user} {name}", **labels)


async def said(store: MemoryStore, user: str = USER, **filters: Any) -> str:
    """The ids of the messages that are found, in order."""
    found = await store.search_conversations("boat sail", AGENT, user, limit=20, **filters)
    return "".join(sorted(hit.message.message_id for hit in found.hits))


@in_event_loop
async def test_messages_are_found_by_the_labels_of_their_conversation(place: Place) -> None:
    async with place.open() as store:
        await record_all(store)
        assert await said(store) == "123456"
        assert await said(store, tags=["work"]) == "1234"
        assert await said(store, tags=["boat"]) == "12345"
        assert await said(store, tags=["boat", "home"]) == "5"
        assert await said(store, tags=["work", "home"]) == ""
        assert await said(store, metadata={"ticket": 17}) == "1234"
        assert await said(store, metadata={"ticket": 17, "open": True}) == "1234"
        assert await said(store, metadata={"open": 1}) == ""
        assert await said(store, metadata={"place": {"room": 1}}) == "5"
        assert await said(store, metadata={"ticket": "17"}) == ""
        assert await said(store, tags=["work"], metadata={"ticket": 18}) == ""
        assert await said(store, tags=[], metadata={}) == "123456"


@in_event_loop
async def test_messages_are_found_by_their_speaker(place: Place) -> None:
    async with place.open() as store:
        await record_all(store)
        assert await said(store, role="user") == "1356"
        assert await said(store, role="assistant") == "2"
        assert await said(store, role="tool") == "4"
        assert await said(store, name="Ada") == "15"
        assert await said(store, name="Bo") == "3"
        assert await said(store, name="shop") == "4"
        assert await said(store, name="ada") == "", "a name is compared exactly"
        assert await said(store, role="user", name="Ada", tags=["work"]) == "1"
        assert await said(store, name="assistant") == "2", "without a name, the role is the name"


@in_event_loop
async def test_filters_go_with_time_and_session(file_place: Place) -> None:
    async with file_place.open() as store:
        for day, session in ((1, "s1"), (2, "s2")):
            await store.record_conversation(
                AGENT,
                USER,
                [{"role": "user", "content": "The boat has a sail.", "message_id": str(day)}],
                session_id=session,
                created_at=f"2024-05-0{day}T10:00:00Z",
                tags=["boat"],
            )
        assert await said(store, tags=["boat"], since="2024-05-02") == "2"
        assert await said(store, tags=["boat"], session_id="s1") == "1"
        assert await said(store, tags=["boat"], session_id="s1", since="2024-05-02") == ""
        assert await said(store, tags=["other"], session_id="s1") == ""


async def known(store: MemoryStore, **filters: Any) -> list[str]:
    found = await store.search_memories("sail", AGENT, USER, limit=20, **filters)
    return sorted(hit.entry.text for hit in found.hits)


ENTRIES: tuple[tuple[str, list[str], dict[str, str]], ...] = (
    ("The user has a red sail.", ["boat"], {"by": "form"}),
    ("The user has a blue sail.", ["boat", "old"], {"by": "crew"}),
    ("The user has a white sail.", [], {}),
)


@in_event_loop
async def test_entries_are_found_by_their_own_labels(place: Place) -> None:
    async with place.open() as store:
        for text, tags, metadata in ENTRIES:
            await store.add_entry(AGENT, USER, "profile", text, tags=tags, metadata=metadata)
        red, blue, white = (text for text, _, _ in ENTRIES)
        assert await known(store) == sorted([red, blue, white])
        assert await known(store, tags=["boat"]) == sorted([red, blue])
        assert await known(store, tags=["boat", "old"]) == [blue]
        assert await known(store, metadata={"by": "form"}) == [red]
        assert await known(store, metadata={"by": "form"}, tags=["old"]) == []
        assert await known(store, metadata={"by": "form"}, content_type="event") == []
        assert await known(store, role="user") == [], "what a person wrote has no speaker"
        edited = await store.edit_entry(
            (await store.search_memories("blue", AGENT, USER)).hits[0].entry.content_id, "The sail is green."
        )
        assert await known(store, tags=["old"]) == [edited.text]


@in_event_loop
async def test_a_learned_entry_has_the_labels_and_speakers_of_its_conversation(place: Place) -> None:
    async with place.open(workers=1, extractor=OfflineExtractor()) as store:
        for name, tag, text in (("c", "work", "I live in Lisbon."), ("d", "home", "My cat is called Kira.")):
            await store.record_conversation(
                AGENT,
                USER,
                [{"role": "user", "name": USER, "content": text}],
                conversation_id=name,
                tags=[tag],
                metadata={"from": tag},
            )
        assert await store.wait_until_learned(AGENT, USER)

        async def learned(**filters: Any) -> list[str]:
            found = await store.search_memories("user lives cat called", AGENT, USER, **filters)
            return sorted({each.conversation_id for hit in found.hits for each in hit.entry.evidence})

        assert await learned() == ["c", "d"]
        assert await learned(tags=["work"]) == ["c"]
        assert await learned(metadata={"from": "home"}) == ["d"]
        assert await learned(role="user", name=USER) == ["c", "d"]
        assert await learned(role="assistant") == await learned(name="Bo") == []
        assert await learned(name=USER, tags=["home"]) == ["d"]


@in_event_loop
async def test_recall_takes_the_same_filters(place: Place) -> None:
    async with place.open() as store:
        await record_all(store)
        await store.add_entry(AGENT, USER, "profile", "The user has a red sail.", tags=["home"])
        recalled = await store.recall("boat sail", AGENT, USER, tags=["home"])
        assert [hit.message.message_id for hit in recalled.turns] == ["5"]
        assert [hit.entry.tags for hit in recalled.entries] == [("home",)]
        assert "toy boat" in recalled.text
        assert "race" not in recalled.text
        await store.add_entry(AGENT, USER, "profile", "The user has a blue sail.", tags=["only here"])
        only = await store.recall("blue sail", AGENT, USER, tags=["only here"])
        assert [hit.entry.tags for hit in only.entries] == [("only here",)]
        assert not any("only here" in warning for warning in only.warnings)
        nothing = await store.recall("boat sail", AGENT, USER, name="Bo", metadata={"ticket": 18})
        assert (nothing.text, nothing.entries, nothing.turns) == ("", (), ())


@in_event_loop
async def test_an_unknown_key_or_tag_finds_nothing_and_says_so(place: Place) -> None:
    async with place.open() as store:
        await record_all(store)
        await store.add_entry(AGENT, USER, "profile", "The user has a red sail.", metadata={"by": "form"})
        found = await store.search_conversations("boat", AGENT, USER, metadata={"by": "form"}, tags=["nope"])
        assert found.hits == ()
        assert found.warnings == (
            "no conversation of the user has the metadata key 'by': nothing is found",
            "no conversation of the user has the tag 'nope': nothing is found",
        )
        known = await store.search_memories("sail", AGENT, USER, metadata={"x": 1})
        assert known.hits == ()
        assert known.warnings[0] == (
            "no conversation or entry of the user has the metadata key 'x': nothing is found"
        )
        right = await store.search_conversations("boat", AGENT, USER, metadata={"ticket": 99}, tags=["work"])
        assert (right.hits, right.warnings) == ((), ()), "the key exists, but not with this value"


@in_event_loop
async def test_filters_see_only_the_users_own_data(place: Place) -> None:
    async with place.open(all_tenants=True) as store:
        await record_all(store)
        await record_all(store, "bo")
        other = store.for_tenant("other")
        await other.record_conversation(
            AGENT,
            USER,
            [{"role": "user", "content": "A boat with a secret sail.", "message_id": "9"}],
            conversation_id="other",
            tags=["secret"],
            metadata={"secret": 1},
        )
        await other.add_entry(AGENT, USER, "profile", "The user has a secret sail.", tags=["secret"])
        secret: tuple[dict[str, Any], ...] = ({"tags": ["secret"]}, {"metadata": {"secret": 1}})
        for filters in secret:
            assert await said(store, **filters) == await said(store, "bo", **filters) == ""
            found = await store.search_memories("sail", AGENT, USER, **filters)
            assert found.hits == ()
            assert "nothing is found" in found.warnings[0], "as if nobody had the key"
        assert await said(other, tags=["secret"]) == "9"
        assert await said(other, tags=["work"]) == ""


@in_event_loop
async def test_all_agents_of_a_user_are_filtered_together(file_place: Place) -> None:
    async with file_place.open() as store:
        for agent in ("one", "two"):
            message = {"role": "user", "content": "The boat has a sail.", "message_id": agent}
            for tag in ("red", "blue"):
                await store.record_conversation(
                    agent, USER, [{**message, "message_id": f"{agent} {tag}"}], tags=[tag]
                )
        found = await store.search_conversations("boat", None, USER, tags=["red"])
        assert sorted(hit.message.message_id for hit in found.hits) == ["one red", "two red"]


@pytest.mark.parametrize("search", ["search_memories", "search_conversations", "recall"])
@in_event_loop
async def test_bad_filters_are_refused_before_anything_is_read(file_place: Place, search: str) -> None:
    async with file_place.open() as store:
        ask = getattr(store, search)
        for filters, kind in (
            ({"tags": "work"}, TypeError),
            ({"tags": ["x" * 65]}, ValueError),
            ({"metadata": {"a": "x" * 1_000_000}}, ValueError),
            ({"role": "robot"}, ValueError),
            ({"name": "\n"}, ValueError),
        ):
            with pytest.raises(kind):
                await ask("boat", AGENT, USER, **filters)


@in_event_loop
async def test_a_corrupt_label_counts_as_absent(file_place: Place) -> None:
    async with file_place.open() as store:
        await record_all(store)
        with closing(sqlite3.connect(file_place.url)) as connection:
            connection.execute("UPDATE conversations SET tags = '{' WHERE conversation_id = 'ada work'")
            connection.commit()
        assert await said(store, tags=["boat"]) == "5"
        assert await said(store, metadata={"ticket": 17}) == "1234"
