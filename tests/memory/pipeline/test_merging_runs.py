"""Runs merge what they have learned: durably, once, and visible in the history of each entry."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.memory.store import MemoryStore
from recollect.testing.contract import in_event_loop

from ..databases import Place
from .extractors import DiaryExtractor
from .kit import LONGEST

SCRIPT = Path(__file__).with_name("merging_process.py")
SUNDAYS = ("2026-10-04", "2026-10-11", "2026-10-18")
HABIT = "The user goes running on Sundays."


async def run_on(store: MemoryStore, day: str, text: str = "I went running today.") -> None:
    said = [{"role": "user", "content": text}]
    await store.record_conversation("agent", "user", said, conversation_id=day, created_at=f"{day}T10:00:00Z")


async def texts_of(store: MemoryStore) -> list[str]:
    return [entry.text for entry in await store.list_entries("agent", "user")]


@in_event_loop
async def test_a_habit_is_learned_from_repeated_events(place: Place) -> None:
    async with place.open(workers=1, extractor=DiaryExtractor()) as store:
        for day in SUNDAYS:
            await run_on(store, day)
        await store.drain(LONGEST)
        (habit,) = await store.list_entries("agent", "user")
        assert (habit.content_type, habit.text) == ("profile", HABIT)
        assert [each.conversation_id for each in habit.evidence] == list(SUNDAYS)
        why = await store.why(habit.content_id)
        assert why is not None
        assert len(why.evidence) == len(why.supersedes) == 3
        assert {entry.content_type for entry in why.supersedes} == {"event"}
        (run,) = await store.list_runs_of(SUNDAYS[-1])
        assert [stage.stage for stage in run.stages] == ["modification", "update", "mind", "consolidation"]
        await run_on(store, "2026-10-25")
        await store.drain(LONGEST)
        (again,) = await store.list_entries("agent", "user")
        assert again.content_id == habit.content_id
        assert len(again.evidence) == 4


@in_event_loop
async def test_a_rejected_habit_does_not_come_back(place: Place) -> None:
    async with place.open(workers=1, extractor=DiaryExtractor()) as store:
        for day in SUNDAYS:
            await run_on(store, day)
        await store.drain(LONGEST)
        (habit,) = await store.list_entries("agent", "user")
        await store.reject_entry(habit.content_id)
        await run_on(store, "2026-10-25")
        await store.drain(LONGEST)
        assert HABIT not in await texts_of(store)


@in_event_loop
async def test_a_run_with_nothing_to_merge_has_three_stages(file_place: Place) -> None:
    async with file_place.open(workers=1, extractor=DiaryExtractor()) as store:
        await run_on(store, SUNDAYS[0])
        await run_on(store, SUNDAYS[1], "I have a cat. I like tea.")
        await store.drain(LONGEST)
        for day in SUNDAYS[:2]:
            (run,) = await store.list_runs_of(day)
            assert [stage.stage for stage in run.stages] == ["modification", "update", "mind"]


@in_event_loop
async def test_an_erased_message_takes_the_habit_and_brings_the_events_back(place: Place) -> None:
    async with place.open(workers=1, extractor=DiaryExtractor()) as store:
        for day in SUNDAYS:
            await run_on(store, day)
        await store.drain(LONGEST)
        await store.erase_conversation(SUNDAYS[1])
        left = await store.list_entries("agent", "user")
        assert [entry.valid_from for entry in left] == [SUNDAYS[0], SUNDAYS[2]]
        assert {entry.content_type for entry in left} == {"event"}


@in_event_loop
async def test_what_a_person_wrote_is_never_merged(place: Place) -> None:
    async with place.open(workers=1, extractor=DiaryExtractor()) as store:
        mine = await store.add_entry("agent", "user", "profile", "The user has a dog.")
        await run_on(store, SUNDAYS[0], "I have a dog named Rex.")
        await store.drain(LONGEST)
        kept = await store.get_entry(mine.content_id)
        assert kept is not None
        assert (kept.retired_at, kept.evidence) == (None, ())


@in_event_loop
async def test_an_entry_goes_into_one_that_says_more(place: Place) -> None:
    async with place.open(workers=1, extractor=DiaryExtractor()) as store:
        await run_on(store, SUNDAYS[0], "I have a dog.")
        await run_on(store, SUNDAYS[1], "I have a dog named Rex.")
        await store.drain(LONGEST)
        (dog,) = await store.list_entries("agent", "user")
        assert dog.text == "The user has a dog named Rex."
        assert {each.conversation_id for each in dog.evidence} == set(SUNDAYS[:2])
        history = await store.get_history(dog.content_id)
        assert [entry.text for entry in history] == ["The user has a dog.", "The user has a dog named Rex."]


@pytest.mark.proof
@in_event_loop
async def test_a_worker_that_is_killed_while_it_merges(shared_place: Place) -> None:
    """Kill before a statement of the transaction, a later one each time: the last worker merges once."""
    async with shared_place.open() as store:
        for day in SUNDAYS:
            await run_on(store, day)
        kills = 0
        with workers_on(shared_place) as workers:
            while await asyncio.to_thread(was_killed, workers, 3 * kills):
                kills += 1
                assert HABIT not in await texts_of(store)
        assert kills >= 4
        (habit,) = await store.list_entries("agent", "user")
        assert (habit.text, len(habit.evidence)) == (HABIT, 3)
        (run,) = await store.list_runs_of(SUNDAYS[-1])
        assert (run.status, run.failures, len(run.stages)) == ("done", (), 4)


def workers_on(place: Place) -> "subprocess.Popen[str]":
    command = [sys.executable, str(SCRIPT), place.url]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def was_killed(workers: "subprocess.Popen[str]", number: int) -> bool:
    """Whether a worker was killed before the statement of this number."""
    assert workers.stdin is not None
    assert workers.stdout is not None
    print(number, file=workers.stdin, flush=True)
    return workers.stdout.readline() == "True\n"
