"""Unexpected errors: no worker ends because of them, and no run is stuck."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from recollect.memory.entry import Entry
from recollect.memory.pipeline.stages import Answer, Candidate, Decision, Excerpt, Mind, Modification, Update
from recollect.memory.run import Coverage
from recollect.testing.contract import in_event_loop

from ...sessions.postgres.database import sql, until_somebody_waits
from ..databases import Place
from .extractors import Hold, ScriptedExtractor
from .kit import LONGEST, QUICK, known_texts, record, run_of, said, working


class Proposing(ScriptedExtractor):
    """Finds what a test proposes. It cites the first message, which a test names `m`."""

    def __init__(self, *candidates: Candidate) -> None:
        super().__init__()
        self.candidates = candidates

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        await super().modification(excerpt)
        said = excerpt.messages[0].message_id
        cited = [
            replace(each, evidence=(said, *(cited for cited in each.evidence if cited != "m")))
            for each in self.candidates
        ]
        return Answer(Modification("", tuple(cited)))


class Answering(ScriptedExtractor):
    """Answers what is no answer."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        await super().modification(excerpt)
        answer: Answer[Modification] = self.answer
        return answer


@pytest.mark.parametrize("answer", [None, "text", Answer(None), Answer(Modification("", (1,)))])  # type: ignore[arg-type]
@in_event_loop
async def test_an_answer_of_the_wrong_kind_fails_the_run(file_place: Place, answer: Any) -> None:
    async with working(file_place, extractor=Answering(answer)) as (store, _):
        conversation = await record(store, "I went to the zoo")
        assert await store.drain(LONGEST) == Coverage(failed=1)
        assert (await run_of(store, conversation)).attempts == 3


ODD = [
    Candidate("event", "nul \x00 and half \ud83d", ("m",), slot="nul \x00", data={"half": "\ud83d \x00"}),
    Candidate("event", "a long slot", ("m",), slot="s" * 5000),
    Candidate("event", "x" * 200_000, ("m",)),
    Candidate("event", "many words " + " ".join(f"word{n}" for n in range(3000)), ("m",)),
    Candidate("event", "", ()),
    Candidate("event", "\x01 marked", ("m",)),
]


@pytest.mark.parametrize("candidate", ODD, ids=range(len(ODD)))
@in_event_loop
async def test_whatever_an_extractor_finds_is_stored_as_it_is(
    shared_place: Place, candidate: Candidate
) -> None:
    async with working(shared_place, extractor=Proposing(candidate)) as (store, _):
        await record(store, "I went to the zoo")
        await record(store, "I went to the zoo")
        assert await store.drain(LONGEST) == Coverage(remembered=2)
        entries = await store.list_entries("agent", "user", content_type="event")
        assert {(entry.text, tuple(entry.data.items())) for entry in entries} == {
            (candidate.text, tuple(candidate.data.items()))
        }


UNFIT = [
    Candidate("event", "I went home", ("m",), valid_from="\x00"),
    Candidate("event", "I went home", ("m\x00",)),
    Candidate("event", "I went home", ("m",), confidence=float("nan"), valid_to="\ud800"),
]


@pytest.mark.parametrize("candidate", UNFIT, ids=range(len(UNFIT)))
@in_event_loop
async def test_what_cannot_be_stored_fails_the_run_and_not_the_worker(
    empty_postgres: str, candidate: Candidate
) -> None:
    extractor = Proposing(candidate)
    async with working(Place(empty_postgres), extractor=extractor) as (store, _):
        conversation = await record(store, "I went to the zoo")
        assert await store.drain(LONGEST) == Coverage(failed=1)
        run = await run_of(store, conversation)
        assert (run.attempts, [failure.stage for failure in run.failures]) == (3, ["update"] * 3)
        extractor.candidates = ()
        await record(store, "I went home", "another")
        assert await store.drain(LONGEST) == Coverage(remembered=1, failed=1)


class Repeating(Proposing):
    """Says that all is known."""

    async def update(
        self, excerpt: Excerpt, candidates: Sequence[Candidate], known: Sequence[Entry]
    ) -> Answer[Update]:
        await super().update(excerpt, candidates, known)
        ids = tuple(entry.content_id for entry in known)
        return Answer(Update(tuple(Decision(place, "none", ids) for place in range(len(candidates)))))


@in_event_loop
async def test_an_entry_that_is_deleted_while_the_model_thinks_stays_deleted(place: Place) -> None:
    extractor = Repeating(Candidate("event", "The user went to the zoo", ("m",)))
    async with working(place, extractor=extractor) as (store, _):
        entry = await store.add_entry("agent", "user", "event", "The user went to the zoo")
        hold = extractor.hold("update")
        conversation = await record(store, "I went to the zoo")
        await hold.wait()
        await store.delete_entry(entry.content_id)
        hold.go.set()
        assert await store.drain(LONGEST) == Coverage(remembered=1)
        assert (await run_of(store, conversation)).failures == ()
        assert await known_texts(store) == []


@in_event_loop
async def test_an_entry_that_is_edited_while_the_model_thinks_keeps_the_edit(place: Place) -> None:
    extractor = Proposing(Candidate("event", "The user went to the zoo", ("m",)))
    async with working(place, extractor=extractor) as (store, _):
        entry = await store.add_entry("agent", "user", "event", "The user went to the zoo")
        hold = extractor.hold("update")
        await record(store, "I went to the zoo")
        await hold.wait()
        await store.edit_entry(entry.content_id, "The user went to the opera")
        hold.go.set()
        assert await store.drain(LONGEST) == Coverage(remembered=1)
        assert await known_texts(store) == ["The user went to the opera"]


@in_event_loop
async def test_recorders_and_workers_never_wait_for_each_other_in_a_circle(empty_postgres: str) -> None:
    place = Place(empty_postgres)
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    before = sql(empty_postgres, deadlocks)
    async with working(place, workers=4, engine_kwargs={"pool_size": 12}) as (store, _):
        memory = await store.add_entry("agent", "user", "profile", "The user is a gardener")
        conversation = await record(store, "I went to the zoo")

        async def disturb(number: int) -> None:
            for turn in range(5):
                text = f"I bought {number * 100 + turn} apples"
                await record(store, text)
                await store.append_messages(conversation.conversation_id, said(text + " and pears"))
                await store.add_entry("agent", "user", "profile", text + " at home")

        await asyncio.gather(*(disturb(number) for number in range(4)))
        assert (await store.drain(LONGEST * 2)).remembered == 21
        assert await store.get_entry(memory.content_id) is not None
    sql(empty_postgres, "SELECT pg_stat_force_next_flush()")
    assert sql(empty_postgres, deadlocks) == before


class Indifferent(ScriptedExtractor):
    """Has nothing to say of anybody's mind."""

    async def mind(self, excerpt: Excerpt, known: Sequence[Entry]) -> Answer[Mind]:
        await super().mind(excerpt, known)
        return Answer(Mind("", None, ()))


@in_event_loop
async def test_a_run_that_ends_does_not_hold_the_conversation_while_it_waits_for_the_memory(
    empty_postgres: str,
) -> None:
    """Whoever appends has the memory first, and then the conversation: the other way round is a circle."""
    extractor = Indifferent()
    async with working(Place(empty_postgres), extractor=extractor) as (store, _):
        hold = extractor.hold("mind")
        await record(store, "I went to the zoo")
        await record(store, "I went home")  # there is another run, so that the memory stays in the queue
        await hold.wait()
        with psycopg.connect(empty_postgres) as other:
            other.execute("SET lock_timeout = '500ms'")  # before PostgreSQL looks for circles
            other.execute("SELECT 1 FROM memories FOR UPDATE")
            hold.go.set()
            await until_somebody_waits(empty_postgres)
            other.execute("UPDATE conversations SET next_index = next_index")
        assert await store.drain(LONGEST) == Coverage(remembered=2)


@in_event_loop
async def test_what_was_taken_out_of_a_result_while_a_run_ends_does_not_come_back(
    empty_postgres: str,
) -> None:
    extractor = Indifferent()
    async with working(Place(empty_postgres), extractor=extractor) as (store, _):
        conversation = await record(store, "I went to the zoo")
        await store.drain(LONGEST)
        hold = extractor.hold("mind")
        await store.append_messages(conversation.conversation_id, said("I went home"))
        await hold.wait()
        with psycopg.connect(empty_postgres) as other:  # as who deletes an entry
            other.execute("UPDATE conversations SET pipeline_result = NULL")
            hold.go.set()
            await until_somebody_waits(empty_postgres)
        assert await store.drain(LONGEST) == Coverage(remembered=1)
        stored = await store.get_conversation(conversation.conversation_id)
    assert stored is not None
    assert stored.pipeline_result is not None
    assert stored.pipeline_result["modification_result"] == "what is new"  # once: of the later run alone


@in_event_loop
async def test_a_queue_without_runs_is_forgotten(file_place: Place) -> None:
    """As it is left where a conversation is recorded a second time."""
    async with working(file_place) as (store, extractor):
        for _ in range(2):
            await record(store, "I went to the zoo", conversation_id="c")
            assert await store.drain(LONGEST) == Coverage(remembered=1)
        assert len(extractor.calls) == 3
        await record(store, "I went home")
        assert await store.drain(LONGEST) == Coverage(remembered=2)


@in_event_loop
async def test_a_call_that_will_not_be_cancelled_does_not_hold_up_the_end_for_ever(file_place: Place) -> None:
    hold = Hold()

    async def stubborn() -> None:
        while not hold.go.is_set():
            try:
                await hold()
            except asyncio.CancelledError:
                continue

    async with working(file_place, options=QUICK) as (store, extractor):
        extractor.next("modification", stubborn)
        await record(store, "I went to the zoo")
        await hold.wait()
        threading.Timer(0.1, hold.go.set).start()
