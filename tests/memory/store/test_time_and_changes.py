"""A later statement wins, whenever it was learned, and concurrent changes do not undo each other."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from recollect import CallableEmbedder, ConflictError, Conversation, Memory, MemoryStore, Message
from recollect.memory.database.access import column_now
from recollect.memory.database.entries import Changes, NewEntry, Support, change
from recollect.memory.pipeline.stages import STAGES
from recollect.testing.contract import in_event_loop

from ..databases import Place

AGENT, USER = "agent", "ada"


async def tell(store: MemoryStore, text: str, when: str, **options: Any) -> str:
    said = [{"role": "user", "content": text}]
    recorded = await store.record_conversation(AGENT, USER, said, created_at=when, **options)
    return recorded.conversation_id


async def homes(store: MemoryStore) -> list[str]:
    memory = await store.get_memory(AGENT, USER)
    assert memory is not None
    return memory.profile_content


@in_event_loop
async def test_what_was_said_earlier_does_not_take_the_place_of_what_was_said_later(place: Place) -> None:
    async with place.open(workers=1) as store:
        await tell(store, "I live in Paris.", "2025-05-01T00:00:00Z")
        await store.drain(20)
        await tell(store, "I live in Berlin.", "2020-05-01T00:00:00Z")
        await store.drain(20)
        assert await homes(store) == ["The user lives in Paris."]
        every = await store.list_entries(AGENT, USER, include_retired=True)
        paris, berlin = sorted(every, key=lambda entry: entry.text, reverse=True)
        assert (berlin.superseded_by, berlin.said_at) == (paris.content_id, datetime(2020, 5, 1, tzinfo=UTC))
        await tell(store, "I live in Rome.", "2026-05-01T00:00:00Z")
        await store.drain(20)
        assert await homes(store) == ["The user lives in Rome."]


@in_event_loop
async def test_what_is_said_again_holds_since_then(file_place: Place) -> None:
    async with file_place.open(workers=1) as store:
        for year in ("2020", "2025"):
            await tell(store, "I live in Paris.", f"{year}-05-01T00:00:00Z")
        await store.drain(20)
        await tell(store, "I live in Berlin.", "2023-05-01T00:00:00Z")
        await store.drain(20)
        assert await homes(store) == ["The user lives in Paris."]


@in_event_loop
async def test_an_edited_entry_keeps_its_slot_and_not_its_old_value(place: Place) -> None:
    async with place.open(workers=1) as store:
        await tell(store, "I live in Berlin.", "2025-05-01T00:00:00Z")
        await store.drain(20)
        (entry,) = await store.list_entries(AGENT, USER)
        edited = await store.edit_entry(entry.content_id, "The user lives in Paris.")
        assert (edited.slot, dict(edited.data)) == (entry.slot, {"edited": True, "edited_by": "library"})
        await tell(store, "I live in Berlin.", "2026-05-01T00:00:00Z")
        await store.drain(20)
        assert await homes(store) == ["The user lives in Berlin."]


@in_event_loop
async def test_of_edits_at_once_one_holds_and_the_others_are_told(shared_place: Place) -> None:
    async with shared_place.open() as store:
        entry = await store.add_entry(AGENT, USER, "profile", "The user sails.")
        edits = [store.edit_entry(entry.content_id, f"The user sails, {number}.") for number in range(4)]
        done = await asyncio.gather(*edits, return_exceptions=True)
        assert sum(isinstance(each, ConflictError) for each in done) == 3
        assert len(await homes(store)) == 1


@in_event_loop
async def test_what_is_deleted_while_it_is_edited_does_not_come_back(shared_place: Place) -> None:
    async with shared_place.open() as store:
        for _ in range(5):
            entry = await store.add_entry(AGENT, USER, "profile", "The user sails.")
            edit = store.edit_entry(entry.content_id, "The user sails a lot.")
            await asyncio.gather(store.delete_entry(entry.content_id), edit, return_exceptions=True)
            left = await store.list_entries(AGENT, USER, include_retired=True)
            assert [each.text for each in left] in ([], ["The user sails a lot."])
            for each in left:
                await store.delete_entry(each.content_id)


@in_event_loop
async def test_a_change_of_a_memory_that_is_gone_is_a_conflict(place: Place) -> None:
    async with place.open() as store:
        changes = Changes((NewEntry("profile", "x"),), (Support("none", "x", ()),))
        with pytest.raises(ConflictError):
            await store._database.write(lambda: change("default", "gone", None, changes, column_now()))


@in_event_loop
async def test_messages_that_are_appended_twice_are_there_once(place: Place) -> None:
    async with place.open() as store:
        conversation = await tell(store, "I sail.", "2025-05-01T00:00:00Z")
        more = [{"role": "user", "content": "I ski.", "message_id": "m2"}]
        first = await store.append_messages(conversation, more)
        assert await store.append_messages(conversation, more) == first
        with pytest.raises(ConflictError):
            await store.append_messages(conversation, [{**more[0], "content": "I swim."}])
        assert len(await store.list_runs_of(conversation)) == 2
        stored = await store.get_conversation(conversation)
        assert stored is not None
        assert [message.content for message in stored.messages] == ["I sail.", "I ski."]


@in_event_loop
async def test_a_conversation_that_is_recorded_twice_is_told_as_it_is_stored(place: Place) -> None:
    async with place.open() as store:
        said = [{"role": "user", "content": "I sail."}]
        first = await store.record_conversation(AGENT, USER, said, conversation_id="c")
        again = await store.record_conversation(AGENT, USER, said, conversation_id="c")
        assert again.to_dict() == {**first.to_dict(), "pipeline_result": again.pipeline_result}


@in_event_loop
async def test_the_result_tells_of_the_whole_conversation(file_place: Place) -> None:
    async with file_place.open(workers=1) as store:
        said = [
            {"role": "user", "content": "I live in Paris." if number == 3 else "Hm."} for number in range(150)
        ]
        recorded = await store.record_conversation(AGENT, USER, said)
        await store.drain(30)
        stored = await store.get_conversation(recorded.conversation_id)
        assert stored is not None
        assert stored.pipeline_result is not None
        assert stored.pipeline_result["pipeline_metadata"]["conversation_length"] == 150
        assert stored.pipeline_result["pipeline_metadata"]["profile_updated"] is True
        assert "Paris" in stored.pipeline_result["modification_result"]
        runs = await store.list_runs_of(recorded.conversation_id)
        assert [[stage.stage for stage in run.stages] for run in runs] == [list(STAGES)] * 2


@in_event_loop
async def test_an_erased_message_is_not_counted(place: Place) -> None:
    async with place.open() as store:
        conversation = await tell(store, "I sail.", "2025-05-01T00:00:00Z")
        (added,) = await store.append_messages(conversation, [{"role": "user", "content": "I ski."}])
        await store.erase_message(conversation, added.message_id)
        (told,) = await store.list_conversations(AGENT, USER)
        assert (told["turn_count"], told["summary"]) == (1, "Conversation with 1 turns: I sail....")


@in_event_loop
async def test_workers_do_the_work_of_their_own_tenant(shared_place: Place) -> None:
    seen: list[str] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        seen.extend(texts)
        return [[1.0, 2.0] for _ in texts]

    embedder = CallableEmbedder(embed, name="two", dimensions=2)
    async with (
        shared_place.open(tenant="b") as theirs,
        shared_place.open(workers=1, embedder=embedder) as ours,
    ):
        await tell(theirs, "I live in Ghent.", "2025-05-01T00:00:00Z", conversation_id="theirs")
        await tell(ours, "I live in Bruges.", "2025-05-01T00:00:00Z", conversation_id="ours")
        await ours.drain(20)
        assert (await theirs.coverage()).pending == 1
        assert not [text for text in seen if "Ghent" in text]
        assert [text for text in seen if "Bruges" in text]


@in_event_loop
async def test_the_embedder_that_began_last_makes_the_vectors(file_place: Place) -> None:
    def make(name: str) -> Any:
        return CallableEmbedder(lambda texts: [[1.0, 2.0] for _ in texts], name=name, dimensions=2)

    async with file_place.open(embedder=make("x")) as x, file_place.open(embedder=make("y")) as y:
        await tell(x, "I sail.", "2025-05-01T00:00:00Z")
        assert await x.embed_pending() == 1
        assert await y.embed_pending() == 1
        assert await x.embed_pending() == 0, "it would undo what the other did"
        await y.append_messages(
            (await y.list_conversations(AGENT, USER))[0]["conversation_id"],
            [{"role": "user", "content": "I ski."}],
        )
        assert await x.embed_pending() == 0
        assert await y.embed_pending() == 1


@pytest.mark.parametrize("make", [Conversation, Memory])
def test_an_owner_must_be_given(make: Any) -> None:
    for missing in ({}, {"agent_id": "a"}, {"user_id": "u"}, {"agent_id": None, "user_id": "u"}):
        with pytest.raises(ValueError, match=r"agent_id|user_id"):
            make(**missing)


@in_event_loop
async def test_an_owner_must_be_given_to_record(file_place: Place) -> None:
    async with file_place.open() as store:
        with pytest.raises(ValueError, match="user_id"):
            await store.record_conversation(agent_id="a", messages=[{"role": "user", "content": "x"}])


def test_messages_as_objects_are_checked_too() -> None:
    good = Message("user", "hi", "m1", 7, datetime(2025, 1, 1, tzinfo=UTC))
    assert Conversation("a", "u", [good]).messages[0].message_index == 0
    for wrong in ({"role": "function"}, {"content": " "}, {"created_at": datetime(2025, 1, 1)}):  # noqa: DTZ001
        with pytest.raises(ValueError, match="message 0"):
            Conversation("a", "u", [Message(**{**vars(good), **wrong})])  # type: ignore[arg-type]


def test_times_beyond_the_calendar_are_refused() -> None:
    early = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
    with pytest.raises(ValueError, match="created_at"):
        Conversation("a", "u", created_at=early)


def test_conversation_data_may_be_missing_and_not_a_number() -> None:
    assert Conversation.from_dict({"agent_id": "a", "user_id": "u", "conversation_data": None}).messages == ()
    with pytest.raises(TypeError, match="conversation_data"):
        Conversation.from_dict({"agent_id": "a", "user_id": "u", "conversation_data": 5})
