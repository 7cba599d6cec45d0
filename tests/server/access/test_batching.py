"""Many who wait for a write share one."""

import asyncio
from collections.abc import Sequence

import pytest

from recollect.server.access.audit import Batcher
from recollect.testing.contract import in_event_loop


class Disk:
    """Writes when it is let, and remembers what came together."""

    def __init__(self) -> None:
        self.writes: list[list[int]] = []
        self.is_let = asyncio.Event()
        self.failure: Exception | None = None

    async def write(self, values: Sequence[int]) -> None:
        await self.is_let.wait()
        if self.failure is not None:
            raise self.failure
        self.writes.append(list(values))


async def turn() -> None:
    """Let everybody come as far as they can."""
    for _ in range(10):
        await asyncio.sleep(0)


@in_event_loop
async def test_those_who_come_meanwhile_are_written_together() -> None:
    disk = Disk()
    batcher = Batcher(disk.write)
    first = asyncio.create_task(batcher.add(0))
    await turn()
    others = [asyncio.create_task(batcher.add(number)) for number in range(1, 50)]
    await turn()
    assert not first.done()
    disk.is_let.set()
    await asyncio.gather(first, *others)
    assert disk.writes == [[0], list(range(1, 50))]


@in_event_loop
async def test_nobody_goes_on_before_their_value_is_written() -> None:
    disk = Disk()
    batcher = Batcher(disk.write)
    waiting = [asyncio.create_task(batcher.add(number)) for number in range(3)]
    await turn()
    assert [task.done() for task in waiting] == [False] * 3
    disk.is_let.set()
    await asyncio.gather(*waiting)
    assert [value for write in disk.writes for value in write] == [0, 1, 2]


@in_event_loop
async def test_a_batch_is_never_too_large() -> None:
    disk = Disk()
    disk.is_let.set()
    batcher = Batcher(disk.write)
    await asyncio.gather(*(batcher.add(number) for number in range(1200)))
    assert [len(write) for write in disk.writes] == [500, 500, 200]
    assert sorted(value for write in disk.writes for value in write) == list(range(1200))


@pytest.mark.parametrize("failure", [OSError("disk"), KeyError("a fault of ours")])
@in_event_loop
async def test_all_who_were_in_a_write_hear_that_it_failed_and_the_next_works(failure: Exception) -> None:
    disk = Disk()
    disk.is_let.set()
    disk.failure = failure
    batcher = Batcher(disk.write)
    told = await asyncio.gather(*(batcher.add(number) for number in range(3)), return_exceptions=True)
    assert told == [failure] * 3
    disk.failure = None
    await batcher.add(7)
    assert disk.writes == [[7]]


@in_event_loop
async def test_who_goes_away_holds_up_nobody() -> None:
    disk = Disk()
    batcher = Batcher(disk.write)
    gone, stays = (asyncio.create_task(batcher.add(number)) for number in range(2))
    await turn()
    gone.cancel()
    disk.is_let.set()
    await stays
    assert gone.cancelled()
    assert disk.writes == [[0, 1]], "it does not take back what it added"


@in_event_loop
async def test_it_can_be_waited_for_until_all_is_written() -> None:
    disk = Disk()
    batcher = Batcher(disk.write)
    await batcher.wait_until_idle()
    adding = asyncio.create_task(batcher.add(1))
    await turn()
    settling = asyncio.create_task(batcher.wait_until_idle())
    await turn()
    assert not settling.done()
    disk.is_let.set()
    await settling
    assert disk.writes == [[1]]
    await adding
