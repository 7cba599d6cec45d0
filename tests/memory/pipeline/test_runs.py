"""Runs: in order within a memory, concurrent across memories, each executed once."""

import asyncio

import pytest

from recollect.memory.run import Coverage
from recollect.testing.contract import in_event_loop

from ..databases import Place
from .extractors import CALM, Call
from .kit import LONGEST, known_texts, record, run_of, said, when, working


@in_event_loop
async def test_what_is_recorded_is_learned(place: Place) -> None:
    async with working(place) as (store, extractor):
        conversation = await record(store, "I went to the zoo")
        assert await store.drain(LONGEST) == Coverage(remembered=1)
        assert await known_texts(store) == ["I went to the zoo"]
        run = await run_of(store, conversation)
        assert (run.status, run.attempts, run.error, run.model) == ("done", 0, None, "scripted")
        assert [(stage.stage, stage.prompt_tokens) for stage in run.stages] == [
            ("modification", 3),
            ("update", 5),
            ("mind", 7),
        ]
        (event, mind) = await store.list_entries("agent", "user")
        (evidence,) = event.evidence
        assert (evidence.run_id, evidence.message_id) == (run.run_id, conversation.messages[0].message_id)
        assert (mind.text, mind.confidence) == (CALM, 0.5)
        assert [call.stage for call in extractor.calls] == ["modification", "update", "mind"]


@in_event_loop
async def test_a_conversation_tells_what_its_run_came_to(place: Place) -> None:
    async with working(place) as (store, _):
        conversation = await record(store, "I went to the zoo")
        await store.drain(LONGEST)
        stored = await store.get_conversation(conversation.conversation_id)
    assert stored is not None
    result = stored.pipeline_result
    assert result is not None
    first_two = {"prompt_tokens": 3 + 5, "completion_tokens": 4 + 6, "total_tokens": 7 + 11}
    last = {"prompt_tokens": 7, "completion_tokens": 8, "total_tokens": 15}
    assert result["modification_result"] == "what is new"
    assert result["update_result"]["profile_updated"] is True
    assert result["update_result"]["raw_llm_response"] == "raw update"
    assert result["update_result"]["metadata"]["llm_usage"] == first_two
    assert result["mind_result"]["insights"] == "calm"
    assert result["mind_result"]["confidence_score"] == 0.5
    assert result["mind_result"]["metadata"]["llm_usage"] == last
    metadata = result["pipeline_metadata"]
    assert (metadata["conversation_length"], metadata["llm_model"]) == (1, "scripted")
    assert metadata["profile_updated"] is True
    assert metadata["execution_time"].endswith("Z")


@in_event_loop
async def test_one_memory_is_changed_by_one_run_at_a_time_in_order(place: Place) -> None:
    async with working(place, workers=4) as (store, extractor):
        for number in range(12):
            await record(store, f"I bought {number} apples")
        await store.drain(LONGEST)
        assert await known_texts(store) == [f"I bought {number} apples" for number in range(12)]
        assert extractor.most_at_once == 1


@in_event_loop
async def test_memories_go_beside_each_other(shared_place: Place) -> None:
    async with working(shared_place, workers=3) as (store, extractor):
        holds = [extractor.hold("modification") for _ in range(3)]
        for user in ("a", "b", "c"):
            await record(store, "I went to the zoo", user)
        for hold in holds:
            await hold.wait()
        for hold in holds:
            hold.go.set()
        assert (await store.drain(LONGEST)).remembered == 3


@in_event_loop
async def test_a_conversation_that_goes_on_is_learned_from_where_it_stood(place: Place) -> None:
    async with working(place) as (store, extractor):
        conversation = await record(store, "I went to the zoo")
        await store.drain(LONGEST)
        await store.append_messages(conversation.conversation_id, said("I saw a red panda"))
        await store.drain(LONGEST)
        assert await known_texts(store) == ["I went to the zoo", "I saw a red panda"]
        assert [call.said for call in extractor.calls] == ["I went to the zoo"] * 3 + [
            "I saw a red panda"
        ] * 3
        first, second = await store.list_runs_of(conversation.conversation_id)
        assert (first.first_index, first.last_index) == (0, 0)
        assert (second.first_index, second.last_index) == (1, 1)


@in_event_loop
async def test_a_long_conversation_is_several_runs(file_place: Place) -> None:
    texts = [f"I counted {number} sheep" for number in range(230)]
    async with working(file_place) as (store, _extractor):
        conversation = await store.record_conversation("agent", "user", said(*texts))
        assert await store.drain(LONGEST) == Coverage(remembered=1)
        spans = [
            (run.first_index, run.last_index)
            for run in await store.list_runs_of(conversation.conversation_id)
        ]
        assert spans == [(0, 99), (100, 199), (200, 229)]
        assert await known_texts(store) == texts


@in_event_loop
async def test_the_same_again_is_support_and_no_second_entry(place: Place) -> None:
    async with working(place) as (store, _):
        conversations = [await record(store, "I went to the zoo") for _ in range(3)]
        await store.drain(LONGEST)
        event, mind = await store.list_entries("agent", "user")
        wanted = {conversation.conversation_id for conversation in conversations}
        assert {each.conversation_id for each in event.evidence} == wanted
        assert {each.conversation_id for each in mind.evidence} == wanted


@in_event_loop
async def test_without_workers_the_work_is_left_to_others(shared_place: Place) -> None:
    async with working(shared_place, workers=0) as (recording, idle):
        conversation = await record(recording, "I went to the zoo")
        assert await recording.coverage() == Coverage(pending=1)
        with pytest.raises(TimeoutError):
            await recording.drain(0.05)
        async with working(shared_place) as (store, busy):
            store.start()
            run = await when(recording, conversation, status="done")
        assert len(run.stages) == 3
        assert (len(idle.calls), len(busy.calls)) == (0, 3)


@in_event_loop
async def test_work_of_other_processes_is_found_without_being_told(shared_place: Place) -> None:
    async with working(shared_place) as (store, extractor), working(shared_place, workers=0) as (other, _):
        store.start()
        await record(store, "I went to the zoo")
        await store.drain(LONGEST)
        conversation = await record(other, "I went home")
        await when(other, conversation, status="done")
        assert Call("mind", "I went home") in extractor.calls


@in_event_loop
async def test_many_stores_on_one_database_share_the_work(shared_place: Place) -> None:
    async with (
        working(shared_place, workers=2) as (one, first),
        working(shared_place, workers=2) as (two, second),
    ):
        await asyncio.gather(
            *(record(store, f"I bought {n} apples", f"u{n % 4}") for n, store in enumerate([one, two] * 10))
        )
        assert await one.drain(LONGEST) == Coverage(remembered=20)
        assert len(first.calls) + len(second.calls) == 60
        assert len(set(first.calls + second.calls)) == 60
        assert {run.status for run in await two.list_runs(limit=100)} == {"done"}


@in_event_loop
async def test_recording_while_a_run_ends_loses_none(shared_place: Place) -> None:
    async with working(shared_place, workers=2) as (store, _):
        for number in range(15):  # each is recorded while the run before it ends
            await record(store, f"I bought {number} apples")
            await asyncio.sleep(number / 1000)
        assert await store.drain(LONGEST) == Coverage(remembered=15)
        assert await known_texts(store) == [f"I bought {number} apples" for number in range(15)]


@in_event_loop
async def test_the_messages_before_are_shown_but_not_learned_again(file_place: Place) -> None:
    async with working(file_place) as (store, extractor):
        conversation = await record(store, "I have a dog")
        await store.append_messages(conversation.conversation_id, said("She is called Bella"))
        await store.drain(LONGEST)
        assert len(await known_texts(store)) == 2
        assert len([call for call in extractor.calls if call.said == "I have a dog"]) == 3


@in_event_loop
async def test_runs_are_told_page_by_page_and_by_status(place: Place) -> None:
    async with working(place, workers=0) as (store, _):
        for number in range(5):
            await record(store, f"I bought {number} apples")
        first = await store.list_runs(limit=3)
        rest = await store.list_runs(after=first[-1].run_id, limit=3)
        assert len({run.run_id for run in first + rest}) == 5
        assert await store.list_runs(status="done") == []
        assert len(await store.list_runs(status="pending")) == 5
        assert await store.get_run(first[0].run_id) == first[0]
        assert await store.get_run("unknown") is None
        with pytest.raises(ValueError, match="status must be one of"):
            await store.list_runs(status="lost")  # type: ignore[arg-type]
