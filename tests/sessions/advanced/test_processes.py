"""Several processes branch, switch, add and pop on one session: nothing lost, nothing twice, nothing torn."""

import asyncio
import random
import time
from typing import Any

import pytest

from recollect.testing.contract import in_event_loop

from .advanced_worker import NAMES
from .database import SharedDatabase, assert_consistent, histories, turns
from .workers import Worker, at_once

pytestmark = pytest.mark.proof


async def prepare(database: Any, items: list[Any]) -> None:
    async with database.open() as session:
        await session.add_items(items)


@pytest.mark.parametrize("count", [2, 4])
def test_processes_branch_switch_add_and_pop_at_once(shared_database: SharedDatabase, count: int) -> None:
    base = turns(1, 2, 3)
    asyncio.run(prepare(shared_database, base))
    said = at_once([Worker(shared_database, "mix", f"w{n}") for n in range(count)])
    lines = [line.split(" ", 1) for lines in said for line in lines]
    added = {f"{batch}/{n}" for kind, batch in lines if kind == "added" for n in range(3)}
    popped = {text for kind, text in lines if kind == "popped"}
    known = {item["content"] for item in base}

    async def look() -> None:
        async with shared_database.open() as session:
            shown = {
                name: [item["content"] for item in items]
                for name, items in (await histories(session)).items()
            }
            for texts in shown.values():
                assert len(texts) == len(set(texts)), "no item is there twice"
                assert_batches_in_order([text for text in texts if text not in known])
            everywhere = {text for texts in shown.values() for text in texts}
            assert everywhere <= added | known, "nothing is shown that nobody added"
            assert (added | known) - everywhere <= popped, "what is gone was popped"
            assert len(shown) > 1
            await assert_consistent(session)

    asyncio.run(look())


def assert_batches_in_order(texts: list[str]) -> None:
    """Each batch stands together, as far as it was not popped, and each process's are in its order."""
    places = [text.split("/") for text in texts]
    for before, (name, number, n) in zip([["", "", ""], *places], places, strict=False):
        assert n == "0" or before == [name, number, str(int(n) - 1)], (before, name, number, n)
    for worker in {name for name, _, _ in places}:
        numbers = [int(number) for name, number, _ in places if name == worker]
        assert numbers == sorted(numbers)


def test_of_those_who_make_a_branch_of_one_name_exactly_one_succeeds(shared_database: SharedDatabase) -> None:
    asyncio.run(prepare(shared_database, turns(1, 2)))
    said = at_once([Worker(shared_database, "race", f"w{n}") for n in range(3)])
    made = [name for names in said for name in names]
    assert sorted(made) == sorted(f"branch {number}" for number in range(NAMES))

    async def look() -> None:
        async with shared_database.open() as session:
            expected = dict.fromkeys(made, turns(1))
            assert await histories(session) == {"main": turns(1, 2), **expected}
            await assert_consistent(session)

    asyncio.run(look())


@pytest.mark.parametrize("seed", range(2))
def test_a_branch_is_whole_or_absent_after_kill_9(shared_database: SharedDatabase, seed: int) -> None:
    asyncio.run(prepare(shared_database, turns(*range(1, 501))))
    worker = Worker(shared_database, "branches")
    worker.wait_until_ready()
    worker.begin()
    assert worker.next_line() == "1"
    time.sleep(random.Random(seed).uniform(0, 0.1))
    acknowledged = 1 + len(worker.kill())

    @in_event_loop
    async def look() -> None:
        async with shared_database.open() as session:
            made = {name: items for name, items in (await histories(session)).items() if name != "main"}
            assert acknowledged <= len(made) <= acknowledged + 1
            for name, items in made.items():
                assert len(items) == 2 * int(name.split()[0]), "a turn has two items"
            assert await session.current_branch() in {"main", *made}
            assert sum(branch["is_current"] for branch in await session.list_branches()) == 1
            await assert_consistent(session)

    look()
