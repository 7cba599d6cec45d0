"""A conversation is learned from after its quiet period: each message by one run."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from recollect.memory.pipeline.scheduler import RunScheduler
from recollect.memory.run import Coverage
from recollect.memory.store import MemoryStore
from recollect.testing.contract import in_event_loop

from ..databases import Place
from .kit import known_texts, said, working

SCRIPT = Path(__file__).with_name("cut_off.py")
LONG = 3600  # seconds: longer than any test


async def spans(store: MemoryStore, conversation_id: str = "c") -> list[tuple[int, int]]:
    """The messages that runs have, in the order of the runs."""
    return [(run.first_index, run.last_index) for run in await store.list_runs_of(conversation_id)]


async def sweep(*stores: MemoryStore, tenant: str = "default") -> int:
    """What workers do when there is time, here and now."""
    made = await asyncio.gather(*(RunScheduler(each._database, tenant).step() for each in stores))
    return sum(made)


async def opened(store: MemoryStore, conversation_id: str = "c", user: str = "user") -> None:
    await store.open_conversation("agent", user, conversation_id=conversation_id)


@in_event_loop
async def test_a_conversation_is_learned_from_when_its_time_has_come(place: Place) -> None:
    async with place.open() as store:
        await opened(store)
        await store.append_messages("c", said("I sail"), learn_after=LONG)
        assert await sweep(store) == 0
        assert await store.coverage() == Coverage(pending=1)
        assert await store.drain(5) == Coverage(pending=1), "it does not wait for what is to be quiet first"
        await store.append_messages("c", said("I row"), learn_after=0)
        assert await sweep(store) == 1
        assert await spans(store) == [(0, 1)]
        assert await sweep(store) == 0


@in_event_loop
async def test_each_message_moves_the_time_on(place: Place) -> None:
    async with place.open() as store:
        await opened(store)
        await store.append_messages("c", said("I sail"), learn_after=0)
        await store.append_messages("c", said("I row"), learn_after=LONG)
        assert await sweep(store) == 0
        assert await spans(store) == []


@in_event_loop
async def test_what_is_added_to_be_learned_at_once_takes_what_waits_along(place: Place) -> None:
    async with place.open() as store:
        await store.record_conversation("agent", "user", said("I am here"), conversation_id="c")
        await store.append_messages("c", said("I sail", "I row"), learn_after=LONG)
        await store.append_messages("c", said("I swim"))
        assert await spans(store) == [(0, 0), (1, 3)]
        await store.append_messages("c", said("I ski"), learn_after=LONG)
        await store.close_conversation("c")
        assert await spans(store) == [(0, 0), (1, 3), (4, 4)]
        assert await sweep(store) == 0


@in_event_loop
async def test_the_same_messages_twice_are_there_once_and_learned_once(shared_place: Place) -> None:
    async with shared_place.open() as store, shared_place.open() as other:
        await opened(store)
        given = [{**said("I sail")[0], "message_id": "m"}]
        placed = await asyncio.gather(
            *(each.append_messages("c", given, learn_after=0) for each in (store, other) * 4)
        )
        assert {message.message_index for (message,) in placed} == {0}
        assert await sweep(store, other) == 1
        assert await store.append_messages("c", given, learn_after=0) == placed[0]
        assert await sweep(store, other) == 0
        assert await spans(store) == [(0, 0)]


@in_event_loop
async def test_workers_learn_from_it_once_it_is_quiet(shared_place: Place) -> None:
    async with working(shared_place) as (store, _):
        await opened(store)
        await store.append_messages("c", said("I sail"), learn_after=LONG)
        await store.append_messages("c", said("I row"), learn_after=0.05)
        async with asyncio.timeout(20):
            while await store.coverage() != Coverage(remembered=1):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert await known_texts(store) == ["I sail", "I row"]


@in_event_loop
async def test_several_who_look_at_once_make_each_run_once(shared_place: Place) -> None:
    async with shared_place.open() as store, shared_place.open() as other, shared_place.open() as third:
        for number in range(20):
            await opened(store, f"c{number}", f"user {number % 3}")
            await store.append_messages(f"c{number}", said("I sail"), learn_after=0)
        assert await sweep(store, other, third) == 20
        assert [await spans(store, f"c{number}") for number in range(20)] == [[(0, 0)]] * 20


@in_event_loop
async def test_messages_that_come_while_runs_are_made_are_neither_lost_nor_learned_twice(
    shared_place: Place,
) -> None:
    async with shared_place.open() as store, shared_place.open() as other:
        await opened(store)

        async def talk(some: MemoryStore) -> None:
            for number in range(12):
                await some.append_messages("c", said(f"{number}"), learn_after=0 if number % 4 else None)

        async def look() -> None:
            for _ in range(12):
                await sweep(store, other)

        await asyncio.gather(talk(store), talk(other), look())
        await sweep(store)
        covered = [index for first, last in await spans(store) for index in range(first, last + 1)]
        assert covered == list(range(24))


@in_event_loop
async def test_what_was_said_before_it_was_erased_is_not_learned_from(place: Place) -> None:
    async with place.open() as store:
        await opened(store)
        (first,) = await store.append_messages("c", said("I sail"), learn_after=0)
        await store.erase_message("c", first.message_id)
        assert await sweep(store) == 1
        assert await spans(store) == []
        memory = await store.get_memory("agent", "user")
        assert memory is not None
        await store.append_messages("c", said("I row"), learn_after=0)
        await store.delete_memory(memory.memory_id)
        assert await sweep(store) == 0
        assert await store.coverage() == Coverage()
        await store.append_messages("c", said("I ski"), learn_after=0)
        await store.erase_conversation("c")
        assert await sweep(store) == 0


@pytest.mark.parametrize("seconds", [-1, float("nan"), True, "5"])
@in_event_loop
async def test_a_time_without_sense_is_refused(file_place: Place, seconds: float) -> None:
    async with file_place.open() as store:
        await opened(store)
        with pytest.raises((TypeError, ValueError), match="learn_after"):
            await store.append_messages("c", said("I sail"), learn_after=seconds)
        assert await store.list_messages("c") == []


# --- processes that are killed ---


@contextmanager
def cutting_off(place: Place, act: str) -> Iterator[Callable[[int], bool]]:
    """Has a process killed before a statement of its transaction; `False` if it has come to the end."""
    command = [sys.executable, str(SCRIPT), place.url, act]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as launcher:
        assert launcher.stdin is not None
        assert launcher.stdout is not None
        stdin, stdout = launcher.stdin, launcher.stdout

        def cut(number: int) -> bool:
            print(number, file=stdin, flush=True)
            return {"True\n": True, "False\n": False}[stdout.readline()]

        yield cut


async def assert_whole(store: MemoryStore, expected: Sequence[int]) -> None:
    """Every message that was acknowledged is in one run, and none in two."""
    await sweep(store)
    stored = await store.list_messages("c")
    assert stored is not None
    assert [message.message_index for message in stored] == list(expected)
    covered = [index for first, last in await spans(store) for index in range(first, last + 1)]
    assert covered == list(expected)


@pytest.mark.proof
@pytest.mark.parametrize("act", ["sweep", "close", "append", "append_quietly"])
@in_event_loop
async def test_a_process_that_is_killed_anywhere_neither_loses_nor_doubles_a_run(
    shared_place: Place, act: str
) -> None:
    async with shared_place.open() as store:
        statement = 0
        with cutting_off(shared_place, act) as cut:
            while True:
                await opened(store)
                await store.append_messages("c", said("I sail", "I row"), learn_after=0)
                was_killed = cut(statement)
                adds = act.startswith("append") and not was_killed
                await assert_whole(store, range(3 if adds else 2))
                if not was_killed:
                    break
                await store.erase_user("user")
                statement += 1
        assert statement > 3, "it was killed before each of its statements, and at last before none"
